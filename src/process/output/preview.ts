import { OUTPUT_PREVIEW_BYTES } from '../../contract/defaults.ts';

/**
 * The last 2 KiB of output as text. It begins with a whole character, invalid UTF-8 becomes U+FFFD, and the text
 * itself has at most 2 KiB. Source: contract section 2, `stdout_preview`.
 */
export function previewOf(tail: Buffer): string {
  let start = Math.max(0, tail.length - OUTPUT_PREVIEW_BYTES);
  if (start > 0 || tail.length === OUTPUT_PREVIEW_BYTES) start += continuationBytes(tail, start);
  let text = tail.subarray(start).toString('utf8');
  // One invalid byte becomes three.
  while (Buffer.byteLength(text) > OUTPUT_PREVIEW_BYTES) {
    const excess = Buffer.byteLength(text) - OUTPUT_PREVIEW_BYTES;
    text = text.slice(Math.max(1, Math.floor(excess / 3)));
  }
  return text.toWellFormed();
}

/** The number of bytes at the end of `data` that begin an incomplete character: 0 to 3. */
export function incompleteBytes(data: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, data.length); back++) {
    const byte = data[data.length - back] as number;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

/** The number of bytes from `from` on that belong to a character that began before: 0 to 3. */
export function continuationBytes(data: Buffer, from: number): number {
  let count = 0;
  while (count < 3 && ((data[from + count] ?? 0) & 0b1100_0000) === 0b1000_0000) count++;
  return count;
}
