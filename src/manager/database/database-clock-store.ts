import { type RawBuilder, sql } from 'kysely';
import type { Clock } from '../../base/clock.ts';
import type { Database } from './database.ts';

/**
 * The time that all replicas share: that of the database, which on SQLite is this machine's. It follows a clock that
 * is set forward, and ignores one that is set back, so that it never stops.
 */
export class DatabaseClock {
  readonly #database: Database;
  readonly #clock: Clock;
  #offset_ms: number;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
    this.#offset_ms = clock.wallMs() - clock.monotonicMs();
  }

  /** Wall time in whole milliseconds since the epoch, as of the last measurement of the database's clock. */
  now(): number {
    if (this.#database.dialect === 'sqlite') this.#follow(this.#clock.wallMs(), this.#clock.monotonicMs());
    return Math.round(this.#clock.monotonicMs() + this.#offset_ms);
  }

  /** SQL for the database's own time, in ms, at the moment of a statement: for values on which replicas must agree. */
  get expression(): RawBuilder<number> {
    if (this.#database.dialect === 'sqlite') return sql<number>`${this.now()}`;
    return sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
  }

  /** Measures the database's clock. Errors: `unavailable`. */
  async measure(): Promise<void> {
    if (this.#database.dialect === 'sqlite') return;
    const began_ms = this.#clock.monotonicMs();
    const { rows } = await sql<{ now_ms: number }>`select ${this.expression} as now_ms`.execute(
      this.#database.db,
    );
    const [row] = rows;
    if (row) this.#follow(row.now_ms, (began_ms + this.#clock.monotonicMs()) / 2);
  }

  #follow(wall_ms: number, monotonic_ms: number): void {
    this.#offset_ms = Math.max(this.#offset_ms, wall_ms - monotonic_ms);
  }
}
