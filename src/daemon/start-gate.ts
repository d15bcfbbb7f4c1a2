import { type Clock, sleep } from '../base/clock.ts';
import { ApiError } from '../contract/errors.ts';

/** Well within the time that a request may take to arrive: its body is not read before. */
const WAIT_MS = 5_000;
const RETRY_AFTER_S = 1;

/** What a caller is told whose request comes before the daemon can serve it. */
export function startingError(): ApiError {
  return new ApiError('outbox_unavailable', 'The daemon is starting.', {
    retry_after_s: RETRY_AFTER_S,
  });
}

/** Where requests wait that come before the daemon has started. */
export class StartGate {
  readonly #clock: Clock;
  #passed = Promise.withResolvers<void>();
  #is_open = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get is_open(): boolean {
    return this.#is_open;
  }

  open(): void {
    this.#is_open = true;
    this.#passed.resolve();
  }

  /** Lets those go who wait: the start takes longer, and they are to be told. */
  release(): void {
    this.#passed.resolve();
    this.#passed = Promise.withResolvers();
  }

  /** Resolves once it is open, and before long in any case. */
  async passed(): Promise<void> {
    const giving_up = new AbortController();
    await Promise.race([this.#passed.promise, sleep(this.#clock, WAIT_MS, giving_up.signal)]);
    giving_up.abort();
  }
}
