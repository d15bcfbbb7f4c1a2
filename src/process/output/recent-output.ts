import { OUTPUT_RECENT_BYTES } from '../../contract/defaults.ts';

/**
 * The newest output of a stream in memory, while anybody follows it: read back from the disk, it would reach a follower
 * at the end at a fraction of the speed. It is on the disk before it is added here, so that no follower has a byte that
 * is lost if the daemon is killed.
 */
export class RecentOutput {
  #followers = 0;
  /** The byte at an offset has its place at the offset modulo the length. */
  #ring: Buffer | null = null;
  #first = 0;
  #end = 0;

  /** Keeps what is added from now on, first the byte at `offset`, until the returned function is called. */
  follow(offset: number): () => void {
    this.#followers += 1;
    if (this.#ring === null) {
      this.#ring = Buffer.allocUnsafeSlow(OUTPUT_RECENT_BYTES);
      this.#first = this.#end = offset;
    }
    return () => {
      this.#followers -= 1;
      if (this.#followers === 0) this.#ring = null;
    };
  }

  /** Appends a copy of `data`, in place of the oldest bytes. */
  add(data: Buffer): void {
    const ring = this.#ring;
    if (ring === null) return;
    const end = this.#end + data.length;
    for (let from = Math.max(0, data.length - ring.length); from < data.length; ) {
      from += data.copy(ring, (this.#end + from) % ring.length, from);
    }
    this.#end = end;
    this.#first = Math.max(this.#first, end - ring.length);
  }

  /** Copies the bytes from `offset` on to `target`; gives their number, 0 if that offset is not in memory. */
  read(offset: number, target: Buffer): number {
    const ring = this.#ring;
    if (ring === null || offset < this.#first || offset >= this.#end) return 0;
    const length = Math.min(target.length, this.#end - offset);
    for (let copied = 0; copied < length; ) {
      const at = (offset + copied) % ring.length;
      copied += ring.copy(target, copied, at, at + length - copied);
    }
    return length;
  }
}
