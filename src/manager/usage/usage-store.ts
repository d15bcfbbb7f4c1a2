import type { Selectable } from 'kysely';
import { unitOf, type WindowType } from '../../contract/usage.ts';
import type { Position } from '../database/cursor.ts';
import type { Database, Transaction } from '../database/database.ts';
import { isAfter, isComplete } from '../database/position-store.ts';
import type { LeaseTable, UsageWindowTable } from '../database/tables.ts';
import type { Span } from './spans.ts';

/** A row of `leases`. */
export type LeaseRow = Selectable<LeaseTable>;
/** A row of `usage_windows`. */
export type WindowRow = Selectable<UsageWindowTable>;

/** The usage in a span of time that has ended. */
export interface ClosedSpan extends Span {
  window_id: string;
  team_id: string;
  sandbox_id: string;
  window_type: WindowType;
  value: number;
}

/** Where and when (wall time) windows are written. */
export interface Recording {
  region_id: string;
  cluster_id: string;
  recorded_at_ms: number;
}

/** PostgreSQL takes at most 65 535 parameters in one statement. */
const ROWS_AT_ONCE = 1_000;

/** Metered leases, and their closed windows, which are added and never changed. Queries reject with `unavailable` if the database is. */
export class UsageStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Runs `work` in one transaction. */
  write<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#database.db.transaction().execute(work);
  }

  /** Begins a lease. */
  async open(tx: Transaction, row: LeaseRow): Promise<void> {
    await tx.insertInto('leases').values(row).execute();
  }

  /** Removes a lease and returns it; null if there is none. */
  async take(tx: Transaction, sandbox_id: string): Promise<LeaseRow | null> {
    const row = await tx
      .deleteFrom('leases')
      .where('sandbox_id', '=', sandbox_id)
      .returningAll()
      .executeTakeFirst();
    return row ?? null;
  }

  /** Every open lease. */
  async leases(): Promise<LeaseRow[]> {
    return this.#database.db.selectFrom('leases').selectAll().execute();
  }

  /** Records that sandboxes were running at `at_ms`. */
  async beat(sandbox_ids: string[], at_ms: number): Promise<void> {
    for (let i = 0; i < sandbox_ids.length; i += ROWS_AT_ONCE) {
      await this.#database.db
        .updateTable('leases')
        .set({ heartbeat_ms: at_ms })
        .where('sandbox_id', 'in', sandbox_ids.slice(i, i + ROWS_AT_ONCE))
        .where('heartbeat_ms', '<', at_ms)
        .execute();
    }
  }

  /** Leases that ran before `before_ms` for a time that is not in a closed window yet. */
  async due(before_ms: number): Promise<LeaseRow[]> {
    return this.#database.db
      .selectFrom('leases')
      .selectAll()
      .where('counted_until_ms', '<', before_ms)
      .where(({ eb, ref }) => eb('heartbeat_ms', '>', ref('counted_until_ms')))
      .execute();
  }

  /** Moves the time up to which a lease is in windows; false if it was moved, or the lease ended, in the meantime. */
  async count(
    tx: Transaction,
    { sandbox_id, counted_until_ms }: LeaseRow,
    until_ms: number,
  ): Promise<boolean> {
    const { numUpdatedRows } = await tx
      .updateTable('leases')
      .set({ counted_until_ms: until_ms })
      .where('sandbox_id', '=', sandbox_id)
      .where('counted_until_ms', '=', counted_until_ms)
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  }

  /** Running sandboxes without a lease: metering was off when they were started. */
  async unmetered(): Promise<{ sandbox_id: string; team_id: string; memory_mib: number }[]> {
    return this.#database.db
      .selectFrom('sandboxes')
      .select(['sandbox_id', 'team_id', 'memory_mib'])
      .where('status', '=', 'running')
      .where('deleted_at_ms', 'is', null)
      .where('sandbox_id', 'not in', this.#database.db.selectFrom('leases').select('sandbox_id'))
      .execute();
  }

  /** Removes every lease, because metering is off. */
  async dropLeases(): Promise<void> {
    await this.#database.db.deleteFrom('leases').execute();
  }

  /** Adds closed windows. Late usage for a span that already has a window becomes another window of the same span. */
  async record(tx: Transaction, spans: readonly ClosedSpan[], recording: Recording): Promise<void> {
    for (let i = 0; i < spans.length; i += ROWS_AT_ONCE) {
      const rows = spans.slice(i, i + ROWS_AT_ONCE).map(({ start_ms, end_ms, ...span }) => ({
        ...span,
        // A value too large to be exact must not keep a sandbox from being paused or deleted.
        value: Math.min(span.value, Number.MAX_SAFE_INTEGER),
        ...recording,
        subject_type: 'sandbox',
        subject_id: span.sandbox_id,
        window_start_ms: start_ms,
        window_end_ms: end_ms,
        unit: unitOf(span.window_type),
      }));
      await tx.insertInto('usage_windows').values(rows).execute();
    }
  }

  /**
   * A team's windows after a position, in an order in which no window ever appears before one that was read. On
   * PostgreSQL, rows of transactions that started after one that is still open are left for a later page.
   */
  async page(
    team_id: string,
    after: Position,
    { limit, window_type }: { limit: number; window_type: WindowType | undefined },
  ): Promise<WindowRow[]> {
    let query = this.#database.db
      .selectFrom('usage_windows')
      .selectAll()
      .where('team_id', '=', team_id)
      .where(isAfter(this.#database.dialect, after))
      .orderBy('xid')
      .orderBy('seq')
      .limit(limit);
    if (window_type !== undefined) query = query.where('window_type', '=', window_type);
    if (this.#database.dialect === 'postgres') {
      query = query.where(isComplete());
    }
    return query.execute();
  }
}
