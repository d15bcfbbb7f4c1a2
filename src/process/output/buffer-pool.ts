import { giveBackSoon } from '../../base/linux/memory.ts';
import { OUTPUT_CHUNK_BYTES } from '../../contract/defaults.ts';

/**
 * Reused memory for output on its way to the disk and to followers, who share it: with the garbage collector alone, a
 * process that floods its output makes the daemon grow by tens of megabytes between two collections.
 */

/** A flood is read, written and sent in pieces of up to this size. */
export const SLAB_BYTES = 8 * OUTPUT_CHUNK_BYTES;
/** The most slabs kept for reuse: enough for a flood on a few streams. */
const SPARE_MAX = 4;

const spare: Buffer[] = [];
/** By the memory of each slab in use: how many use it. One whose uses are not all released is left to the collector. */
const uses = new WeakMap<ArrayBufferLike, number>();

/** Keeps the slab that `data` is part of, if it is part of any, until `release` is called once more. */
export function retain(data: Buffer): void {
  const count = uses.get(data.buffer);
  if (count !== undefined) uses.set(data.buffer, count + 1);
}

/** Ends a use of the slab that `data` is part of: after the last one it must not be read any more. Other memory is ignored. */
export function release(data: Buffer): void {
  const count = uses.get(data.buffer);
  if (count === undefined) return;
  if (count > 1) {
    uses.set(data.buffer, count - 1);
    return;
  }
  uses.delete(data.buffer);
  if (spare.length < SPARE_MAX) spare.push(Buffer.from(data.buffer));
}

/** Memory that the output of one stream is read into, one piece behind the other. */
export class ReadMemory {
  #slab: Buffer | null = null;
  #used = 0;

  /** Where to read to: at least a chunk (OUTPUT_CHUNK_BYTES). */
  room(): Buffer {
    if (this.#slab && this.#slab.length - this.#used < OUTPUT_CHUNK_BYTES) this.leave();
    if (!this.#slab) {
      giveBackSoon();
      this.#slab = spare.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES);
      uses.set(this.#slab.buffer, 1);
      this.#used = 0;
    }
    return this.#slab.subarray(this.#used);
  }

  /** The first `length` bytes of `room`, which the caller releases. */
  take(length: number): Buffer {
    const data = this.room().subarray(0, length);
    this.#used += length;
    retain(data);
    return data;
  }

  /** A copy of `bytes`, which must be at most one chunk; the caller releases it. */
  copyOf(bytes: Uint8Array): Buffer {
    this.room().set(bytes);
    return this.take(bytes.length);
  }

  /** Holds no memory until more is read. */
  leave(): void {
    if (this.#slab) release(this.#slab);
    this.#slab = null;
  }
}
