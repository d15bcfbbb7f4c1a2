import { OUTPUT_CHUNK_BYTES } from '../../contract/defaults.ts';

/**
 * Reused memory for output on its way to disk: with the garbage collector alone, a process that floods its output makes
 * the daemon grow by tens of megabytes between two collections.
 */

/** The most chunks kept for reuse: enough for a flood on a few streams. */
const SPARE_MAX = 32;
/** Smaller pieces are not worth a whole chunk. */
const CHUNK_FROM_BYTES = 8 * 1024;

const spare: Buffer[] = [];

/** A copy of `bytes`, which must be at most one chunk (OUTPUT_CHUNK_BYTES). */
export function copyOf(bytes: Uint8Array): Buffer {
  if (bytes.length < CHUNK_FROM_BYTES) return Buffer.from(bytes);
  const chunk = spare.pop() ?? Buffer.allocUnsafeSlow(OUTPUT_CHUNK_BYTES);
  chunk.set(bytes);
  return chunk.subarray(0, bytes.length);
}

/** Returns a buffer of `copyOf` to the pool; it must not be used afterwards. Other buffers are ignored. */
export function release(data: Buffer): void {
  const is_chunk = data.byteOffset === 0 && data.buffer.byteLength === OUTPUT_CHUNK_BYTES;
  if (is_chunk && data.length >= CHUNK_FROM_BYTES && spare.length < SPARE_MAX) {
    spare.push(Buffer.from(data.buffer));
  }
}
