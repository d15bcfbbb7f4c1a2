import type { Clock, Timer } from '../../base/clock.ts';

const STEPS = 10;

/**
 * Detects that a request is not answered in time, for any number of requests at the cost of one timer. Answers arrive
 * in the order of the requests. Time in which this process was suspended does not count.
 */
export class AnswerWatch {
  readonly #clock: Clock;
  readonly #step_ms: number;
  readonly #onLate: () => void;
  #asked = 0;
  #answered = 0;
  /** The number of requests made by each of the last steps, oldest first. */
  #marks: number[] = [];
  #timer: Timer | null = null;

  /** `onLate` is called between `timeout_ms` and a tenth more after the oldest request without an answer. */
  constructor(clock: Clock, timeout_ms: number, onLate: () => void) {
    this.#clock = clock;
    this.#step_ms = timeout_ms / STEPS;
    this.#onLate = onLate;
  }

  /** A request was sent. */
  asked(): void {
    this.#asked += 1;
    if (this.#timer === null) this.#wait();
  }

  /** A request has ended: with an answer, with an error, or because no answer can come any more. */
  answered(): void {
    this.#answered += 1;
  }

  /** Stops the timer. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #wait(): void {
    this.#timer = this.#clock.after(this.#step_ms, () => this.#step());
  }

  #step(): void {
    this.#timer = null;
    const is_idle = this.#answered === this.#asked;
    const oldest = this.#marks.length === STEPS ? (this.#marks.shift() as number) : 0;
    const is_late = this.#answered < oldest;
    if (is_idle || is_late) this.#marks = [];
    else this.#marks.push(this.#asked);
    if (is_late) this.#onLate();
    if (!is_idle) this.#wait();
  }
}
