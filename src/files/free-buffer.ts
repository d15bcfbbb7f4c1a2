/**
 * Frees the memory of a buffer that nobody uses any more, neither this program nor the kernel. Left to the garbage
 * collector, which sees only small objects, far more of it would wait than is in use. A part of a larger buffer stays.
 */
export function freeBuffer({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
