import { atMost, type Clock, runTime } from '../../base/clock.ts';

/** How long the caller waits before it gets the last answer. */
const ANSWER_MS = 500;

/** An answer of the writer that is worth something when it is old: a disk that hangs does not hold up its callers. */
export class LastAnswer<Value> {
  readonly #clock: Clock;
  readonly #ask: () => Promise<Value>;
  #value: Value;
  #asked: Promise<void> | null = null;

  /** `ask` may reject; `value` is the answer until the first. */
  constructor(clock: Clock, ask: () => Promise<Value>, value: Value) {
    this.#clock = runTime(clock);
    this.#ask = ask;
    this.#value = value;
  }

  /** The answer, or the last one after half a second. It is asked for once at a time, whoever calls. */
  async get(): Promise<Value> {
    this.#asked ??= this.#next();
    await atMost(this.#clock, ANSWER_MS, this.#asked);
    return this.#value;
  }

  async #next(): Promise<void> {
    try {
      this.#value = await this.#ask();
    } catch {
      // The last one stays.
    }
    this.#asked = null;
  }
}
