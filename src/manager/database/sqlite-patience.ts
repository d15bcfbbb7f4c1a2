import { type Clock, sleep } from '../../base/clock.ts';
import type { Watching } from './database-driver.ts';

/** How long another process may keep the right to write before a write is refused. */
const PATIENCE_MS = 2_000;
const RETRY_MS = 10;

/**
 * Waits for another process that has the right to write, without standing still. Once it has kept that for too long
 * nothing waits any more until it is had again.
 */
export class SqlitePatience implements Watching {
  readonly #clock: Clock;
  readonly #inTransaction: () => boolean;
  #busy_since_ms: number | null = null;

  constructor(clock: Clock, inTransaction: () => boolean) {
    this.#clock = clock;
    this.#inTransaction = inTransaction;
  }

  async watch<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        const result = await work();
        // Reads succeed all the same.
        if (tries > 1 || this.#inTransaction()) this.#busy_since_ms = null;
        return result;
      } catch (error) {
        const is_busy = /^SQLITE_BUSY/.test((error as { code?: string }).code ?? '');
        if (!is_busy || this.#inTransaction() || !this.#mayWait()) throw error;
      }
      await sleep(this.#clock, RETRY_MS);
    }
  }

  async close(): Promise<void> {}

  #mayWait(): boolean {
    const now_ms = this.#clock.monotonicMs();
    this.#busy_since_ms ??= now_ms;
    return now_ms - this.#busy_since_ms < PATIENCE_MS;
  }
}
