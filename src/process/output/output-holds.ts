import { OUTPUT_KEEP_BYTES, OUTPUT_PENDING_BYTES } from '../../contract/defaults.ts';
import type { ChangeSignal } from '../change-signal.ts';

/**
 * What the lossless followers of one stream hold: nothing that one of them has not taken is removed, and the process is
 * read only a little further.
 */
export class OutputHolds {
  readonly #room: ChangeSignal;
  readonly #taken = new Map<object, number>();
  #ahead_max_bytes = OUTPUT_PENDING_BYTES;

  /** `room` is notified of every change. */
  constructor(room: ChangeSignal) {
    this.#room = room;
  }

  /** The offset that the slowest follower has taken everything before; infinite if there is none. */
  get slowest(): number {
    return Math.min(...this.#taken.values());
  }

  /** Whether a process that was read to offset `end` should not be read for now. */
  isFull(end: number): boolean {
    return this.#taken.size > 0 && end - this.slowest >= this.#ahead_max_bytes;
  }

  /** Notes that this follower, which may be new, has taken everything before `offset`. */
  set(follower: object, offset: number): void {
    this.#taken.set(follower, offset);
    this.#room.notify();
  }

  /** Forgets a follower. */
  delete(follower: object): void {
    if (this.#taken.delete(follower)) this.#room.notify();
  }

  /**
   * Lets followers be as far behind as output is kept at all, or ends that: a process that is to end must not wait for
   * a follower that takes nothing.
   */
  widen(is_ending: boolean): void {
    this.#ahead_max_bytes = is_ending ? OUTPUT_KEEP_BYTES : OUTPUT_PENDING_BYTES;
    this.#room.notify();
  }
}
