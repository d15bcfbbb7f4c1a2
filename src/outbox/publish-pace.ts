/** A consumer whose answers take longer than this, in ms, is not kept up with by taking fewer publishes. */
const QUICK_ANSWER_MS = 4;
/** Attempts over which the time of an answer is averaged, about. */
const AVERAGED = 16;
/** Publishes accepted in a turn for each connection of the delivery, while the delivery is behind: at least and at most. */
const LEAST = 0.25;
const MOST = 1.5;

/**
 * How many publishes a turn of the event loop takes while more records wait than the delivery has connections. Publishers
 * must not starve the delivery to a quick consumer: a turn takes as many publishes as attempts have ended in it. Beside a
 * slow one, which leaves most turns to the publishers, that would only make them slow as well.
 */
export class PublishPace {
  readonly #concurrency: number;
  #ended = 0;
  #answer_ms = 0;

  /** `concurrency`: the delivery's connections. */
  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /** Notes an attempt that has ended. */
  note(duration_ms: number): void {
    this.#ended += 1;
    this.#answer_ms += (duration_ms - this.#answer_ms) / AVERAGED;
  }

  /** How many of the waiting publishes to take in this turn; `is_behind`: whether the delivery is. */
  take(waiting: number, is_behind: boolean): number {
    const ended = this.#ended;
    this.#ended = 0;
    if (!is_behind) return waiting;
    const is_quick = this.#answer_ms < QUICK_ANSWER_MS;
    return Math.ceil(is_quick ? Math.max(ended, LEAST * this.#concurrency) : MOST * this.#concurrency);
  }
}
