import { type Backoff, backoffMs } from '../contract/backoff.ts';
import type { Clock } from './clock.ts';

const BACKOFF: Backoff = { base_ms: 500, max_ms: 60_000 };
/** If there are more, the oldest one is forgotten, and so tried again at once. */
const DEFERRED_MAX = 1_000;

/** Exponential backoff by id: items that keep failing must not displace items that may succeed. */
export class Deferrals {
  readonly #clock: Clock;
  readonly #deferred = new Map<string, { until_ms: number; failures: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a failure: 500 ms of backoff, doubled with each further failure up to 60 s. */
  defer(id: string): void {
    const failures = (this.#deferred.get(id)?.failures ?? 0) + 1;
    const until_ms = this.#clock.monotonicMs() + backoffMs(failures, BACKOFF);
    this.#deferred.delete(id);
    this.#deferred.set(id, { until_ms, failures });
    const [oldest] = this.#deferred.keys();
    if (this.#deferred.size > DEFERRED_MAX && oldest !== undefined) this.#deferred.delete(oldest);
  }

  /** Records a success. */
  forget(id: string): void {
    this.#deferred.delete(id);
  }

  /** The ids in backoff now. Entries that have not failed again for a long time are dropped. */
  current(): string[] {
    const now_ms = this.#clock.monotonicMs();
    const current: string[] = [];
    for (const [id, { until_ms, failures }] of this.#deferred) {
      if (now_ms < until_ms) current.push(id);
      else if (now_ms > until_ms + backoffMs(failures, BACKOFF) + BACKOFF.max_ms) this.#deferred.delete(id);
    }
    return current;
  }
}
