import { readFileSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';

/** How long signals may go on before what the kernel dropped is looked for. */
const QUIET_MS = 1_000;
/** What the kernel keeps where it does not say, and the part of it that is suspicious when it comes at once. */
const QUEUE_DEFAULT = 16_384;
const SUSPICIOUS_SHARE = 0.5;

/**
 * Guesses when the kernel's queue overflowed: libuv hides that from us, but it hands over the whole queue in one turn
 * of the event loop, so a turn with nearly as many signals as the queue holds is the hint. Signals of closed watches
 * are not seen, hence the share.
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

  /** Whether signals may be missing that are not looked for yet. */
  get suspected(): boolean {
    return this.#suspected;
  }

  /** Counts a signal. */
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
  try {
    return Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8')) || QUEUE_DEFAULT;
  } catch {
    return QUEUE_DEFAULT;
  }
}
