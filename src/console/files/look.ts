/** Most of a file that is looked into. */
export const PREVIEW_MAX_BYTES = 256 * 1024;
const ROW_BYTES = 16;
const HEX_ROWS_MAX = 1_024;

/** What was read of a file. */
export interface Looked {
  bytes: Uint8Array;
  /** Null where it is no text. */
  text: string | null;
  /** Of the whole file, in bytes. */
  size: number;
  is_cut: boolean;
  etag: string;
  can_edit: boolean;
}

/** Reads the beginning of a file from an answer with all or a part of it. */
export async function look(response: Response): Promise<Looked> {
  const all = new Uint8Array(await response.arrayBuffer());
  const bytes = all.subarray(0, PREVIEW_MAX_BYTES);
  const [, total] = /\/(\d+)$/.exec(response.headers.get('content-range') ?? '') ?? [];
  const size = total === undefined ? all.length : Number(total);
  const is_cut = size > bytes.length;
  const text = textOf(bytes, is_cut);
  const etag = response.headers.get('etag');
  return { bytes, text, size, is_cut, etag: etag ?? '', can_edit: text !== null && !is_cut && etag !== null };
}

function textOf(bytes: Uint8Array, is_cut: boolean): string | null {
  if (bytes.includes(0)) return null;
  try {
    // A character may be cut in two at the end.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: is_cut });
  } catch {
    return null;
  }
}

/** Bytes as rows of hex digits, with the characters that can be shown. */
export function hexDump(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let at = 0; at < bytes.length && rows.length < HEX_ROWS_MAX; at += ROW_BYTES) {
    const row = [...bytes.subarray(at, at + ROW_BYTES)];
    const hex = row.map((each) => each.toString(16).padStart(2, '0')).join(' ');
    const text = row.map((each) => (each >= 0x20 && each < 0x7f ? String.fromCharCode(each) : '.')).join('');
    rows.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(ROW_BYTES * 3 - 1)}  ${text}`);
  }
  return rows.join('\n');
}
