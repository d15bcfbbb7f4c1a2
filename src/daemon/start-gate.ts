import { atMost, type Clock, runTime } from '../base/clock.ts';
import { ApiError } from '../contract/errors.ts';

/** Well within the request timeout: a waiting request's body is not read. */
const WAIT_MS = 5_000;
const RETRY_AFTER_S = 1;

/** Returns the error for a request that arrives before the daemon can serve it: `outbox_unavailable`, 503. */
export function startingError(): ApiError {
  return new ApiError('outbox_unavailable', 'The daemon is starting.', {
    retry_after_s: RETRY_AFTER_S,
  });
}

/** Holds requests that arrive before the daemon has started. */
export class StartGate {
  readonly #clock: Clock;
  #passed = Promise.withResolvers<void>();
  #is_open = false;

  constructor(clock: Clock) {
    this.#clock = runTime(clock);
  }

  /** Whether requests pass without waiting. */
  get is_open(): boolean {
    return this.#is_open;
  }

  /** Lets all requests pass, now and later. */
  open(): void {
    this.#is_open = true;
    this.#passed.resolve();
  }

  /** Lets waiting requests pass once, to be refused: the start takes longer. */
  release(): void {
    this.#passed.resolve();
    this.#passed = Promise.withResolvers();
  }

  /** Resolves when the gate opens or releases, after at most 5 s. */
  async passed(): Promise<void> {
    await atMost(this.#clock, WAIT_MS, this.#passed.promise);
  }
}
