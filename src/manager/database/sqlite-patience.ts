import { type Clock, runTime, sleep } from '../../base/clock.ts';
import type { QueryGuard } from './database-driver.ts';

/** How long another process may hold the write lock before a write is refused. */
const PATIENCE_MS = 2_000;
const RETRY_MS = 10;

/**
 * Waits for another process that holds the write lock, without blocking the event loop. Once the lock has been held
 * for too long, calls fail at once until a write succeeds again.
 */
export class SqlitePatience implements QueryGuard {
  readonly #clock: Clock;
  readonly #inTransaction: () => boolean;
  #busy_since_ms: number | null = null;

  constructor(clock: Clock, inTransaction: () => boolean) {
    this.#clock = clock;
    this.#inTransaction = inTransaction;
  }

  /** Runs `work`, and repeats it while the database is locked. Rejects with the error of the last try. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        const result = await work();
        // A read at the first try succeeds even while the lock is held.
        if (tries > 1 || this.#inTransaction()) this.#busy_since_ms = null;
        return result;
      } catch (error) {
        const is_busy = /^SQLITE_BUSY/.test((error as { code?: string }).code ?? '');
        if (!is_busy || this.#inTransaction() || !this.#mayWait()) throw error;
      }
      await sleep(runTime(this.#clock), RETRY_MS);
    }
  }

  /** Does nothing: no check runs in the background. */
  async close(): Promise<void> {}

  #mayWait(): boolean {
    const now_ms = runTime(this.#clock).monotonicMs();
    this.#busy_since_ms ??= now_ms;
    return now_ms - this.#busy_since_ms < PATIENCE_MS;
  }
}
