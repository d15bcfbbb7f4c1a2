import { OUTPUT_CHUNK_BYTES, OUTPUT_RECENT_ALL_BYTES, OUTPUT_RECENT_BYTES } from '../../contract/defaults.ts';
import { release, retain } from './buffer-pool.ts';

/** Bytes one after the other in memory. */
interface Piece {
  offset: number;
  data: Buffer;
  /** Room for more behind `data`, of memory that only this list writes to. */
  room: Buffer | null;
}

/** Bytes of all streams that are in memory here. */
let all_bytes = 0;

/**
 * The newest output of a stream in memory, while anybody follows it: read back from the disk, it would reach a follower
 * at the end at a fraction of the speed. It is on the disk before it is added here, so that no follower has a byte that
 * is lost if the daemon is killed.
 */
export class RecentOutput {
  #followers = 0;
  /** Oldest first, without gaps. */
  readonly #pieces: Piece[] = [];
  #end = 0;

  /** Keeps what is added from now on, first the byte at `offset`, until the returned function is called. */
  follow(offset: number): () => void {
    if (this.#followers === 0) this.#end = offset;
    this.#followers += 1;
    return () => {
      this.#followers -= 1;
      if (this.#followers === 0) this.#removeWhile(() => true);
    };
  }

  /** Adds the next bytes. Much at once is kept where it is, see `retain`; little is copied, since it may be part of much. */
  add(data: Buffer): void {
    if (this.#followers === 0) return;
    if (data.length >= OUTPUT_CHUNK_BYTES) this.#share(data);
    else this.#copy(data);
    all_bytes += data.length;
    const kept_bytes = all_bytes > OUTPUT_RECENT_ALL_BYTES ? OUTPUT_CHUNK_BYTES : OUTPUT_RECENT_BYTES;
    this.#removeWhile((oldest) => this.#end - oldest.offset - oldest.data.length >= kept_bytes);
  }

  /**
   * The bytes from `offset` on that are in memory in one piece; null if there are none. They are valid in this step only,
   * or until the `release` of who calls `retain`.
   */
  at(offset: number): Buffer | null {
    const piece = this.#pieces.findLast((each) => each.offset <= offset);
    if (!piece || offset >= this.#end) return null;
    return piece.data.subarray(offset - piece.offset);
  }

  #share(data: Buffer): void {
    const last = this.#pieces.at(-1);
    if (last && !last.room && isBehind(last.data, data)) {
      last.data = Buffer.from(data.buffer, last.data.byteOffset, last.data.length + data.length);
    } else {
      retain(data);
      this.#pieces.push({ offset: this.#end, data, room: null });
    }
    this.#end += data.length;
  }

  #copy(data: Buffer): void {
    for (let copied = 0; copied < data.length; ) {
      let last = this.#pieces.at(-1);
      if (!last?.room?.length) {
        const room = Buffer.allocUnsafeSlow(OUTPUT_CHUNK_BYTES);
        last = { offset: this.#end, data: room.subarray(0, 0), room };
        this.#pieces.push(last);
      }
      const room = last.room as Buffer;
      const length = data.copy(room, 0, copied);
      last.data = Buffer.from(room.buffer, 0, last.data.length + length);
      last.room = room.subarray(length);
      this.#end += length;
      copied += length;
    }
  }

  #removeWhile(isSpare: (oldest: Piece) => boolean): void {
    for (let oldest = this.#pieces[0]; oldest && isSpare(oldest); oldest = this.#pieces[0]) {
      this.#pieces.shift();
      all_bytes -= oldest.data.length;
      release(oldest.data);
    }
  }
}

/** Whether `next` begins in memory where `data` ends. */
function isBehind(data: Buffer, next: Buffer): boolean {
  return data.buffer === next.buffer && data.byteOffset + data.length === next.byteOffset;
}
