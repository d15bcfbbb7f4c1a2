/** Bytes of a file: from `start` up to, but without, `end`. */
export interface ByteRange {
  start: number;
  end: number;
}

/**
 * The bytes that a `Range` header asks for, of a file of `size_bytes`. Null where the whole file is to be sent: for
 * several ranges, another unit, or a header that makes no sense. `unsatisfiable` where the file has none of them.
 * Source: RFC 9110, section 14.
 */
export function parseRange(
  header: string | undefined,
  size_bytes: number,
): ByteRange | null | 'unsatisfiable' {
  const [, first, last] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  if (first === '') {
    const length = Math.min(Number(last), size_bytes);
    return length === 0 ? 'unsatisfiable' : { start: size_bytes - length, end: size_bytes };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return null;
  if (start >= size_bytes) return 'unsatisfiable';
  return { start, end: last === '' ? size_bytes : Math.min(Number(last) + 1, size_bytes) };
}
