import type { Clock } from '../../base/clock.ts';
import { readKernelSetting } from '../../base/linux/procfs.ts';

/** Time from the suspicion until the rescan, so that the burst can end first. */
const QUIET_MS = 1_000;
/** The kernel's default queue length, and the share of the queue that is suspicious when it arrives at once. */
const QUEUE_DEFAULT = 16_384;
const SUSPICIOUS_SHARE = 0.5;

/**
 * Guesses when the kernel's queue of signals overflowed. libuv hides the overflow, but delivers the whole queue in one
 * turn of the event loop, so a turn with about as many signals as the queue holds is suspicious. Signals of closed
 * watches are not delivered, hence the share.
 */
export class OverflowGuess {
  readonly #clock: Clock;
  readonly #onOverflow: () => void;
  readonly #suspicious: number;
  #in_this_turn = 0;
  #suspected = false;

  constructor(clock: Clock, onOverflow: () => void, queue_length = queueLength()) {
    this.#clock = clock;
    this.#onOverflow = onOverflow;
    this.#suspicious = queue_length * SUSPICIOUS_SHARE;
  }

  /** Whether signals may have been lost for which no rescan has started yet. */
  get suspected(): boolean {
    return this.#suspected;
  }

  /** Counts one signal. */
  signal(): void {
    if (this.#in_this_turn++ === 0) setImmediate(() => this.#turn());
  }

  #turn(): void {
    const suspicious = this.#in_this_turn >= this.#suspicious;
    this.#in_this_turn = 0;
    if (!suspicious || this.#suspected) return;
    this.#suspected = true;
    this.#clock.after(QUIET_MS, () => {
      this.#suspected = false;
      this.#onOverflow();
    });
  }
}

function queueLength(): number {
  return Number(readKernelSetting('fs/inotify/max_queued_events')) || QUEUE_DEFAULT;
}
