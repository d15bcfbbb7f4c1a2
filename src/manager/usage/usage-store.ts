import { type RawBuilder, type Selectable, sql } from 'kysely';
import { unitOf, type WindowType } from '../../contract/words.ts';
import type { Position } from '../database/cursor.ts';
import type { Database, Queries, Transaction } from '../database/database.ts';
import { isAfter, isComplete } from '../database/position-store.ts';
import { SettingStore } from '../database/setting-store.ts';
import type { LeaseTable, UsageWindowTable } from '../database/tables.ts';
import type { Lease } from '../sandboxes/ports.ts';
import { HOUR_MS, type Span } from './spans.ts';

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
/** The setting that holds when all sandboxes were last looked at. */
const LAST_LOOK = 'usage_last_look';
const HOUR = sql.lit(HOUR_MS);

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

  /** When all sandboxes were last looked at; 0 before the first time. */
  async lastLook(queries: Queries = this.#database.db): Promise<number> {
    return Number((await new SettingStore(queries).find(LAST_LOOK)) ?? 0);
  }

  /** Notes a look, which has seen every leased sandbox run but these: of a lease alone nothing is written while it goes on. */
  async looked(tx: Transaction, at_ms: number, unseen: ReadonlySet<string>): Promise<void> {
    const before_ms = await this.lastLook(tx);
    const rows = await tx
      .selectFrom('leases')
      .select('sandbox_id')
      .where('last_seen_ms', 'is not', null)
      .execute();
    const noted = new Set(rows.map(({ sandbox_id }) => sandbox_id));
    const last_seen_ms = sql<number>`case when started_ms > ${before_ms} then started_ms else ${before_ms} end`;
    await this.#see(
      tx,
      [...unseen].filter((id) => !noted.has(id)),
      last_seen_ms,
    );
    await this.#see(
      tx,
      [...noted].filter((id) => !unseen.has(id)),
      null,
    );
    const value = String(at_ms);
    // Of looks of several replicas the last one stays.
    const is_later = sql<boolean>`cast(settings.value as bigint) < ${at_ms}`;
    await tx
      .insertInto('settings')
      .values({ key: LAST_LOOK, value })
      .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }).where(is_later))
      .execute();
  }

  async #see(tx: Transaction, sandbox_ids: string[], last_seen_ms: RawBuilder<number> | null): Promise<void> {
    for (let i = 0; i < sandbox_ids.length; i += ROWS_AT_ONCE) {
      await tx
        .updateTable('leases')
        .set({ last_seen_ms })
        .where('sandbox_id', 'in', sandbox_ids.slice(i, i + ROWS_AT_ONCE))
        .where('last_seen_ms', last_seen_ms === null ? 'is not' : 'is', null)
        .execute();
    }
  }

  /**
   * Takes up to `limit` leases that were seen to run for a full hour that is in no closed window yet, the last before
   * `hour_ms`, until when each is counted from now on. The same lease is never given for the same time again.
   */
  async takeDue(
    tx: Transaction,
    hour_ms: number,
    limit: number,
  ): Promise<(LeaseRow & { until_ms: number })[]> {
    const due = tx
      .selectFrom('leases')
      .selectAll()
      .select(sql<number>`coalesce(last_seen_ms - last_seen_ms % ${HOUR}, ${hour_ms})`.as('until_ms'))
      .where('counted_until_ms', '<', hour_ms)
      .where(sql<boolean>`(last_seen_ms is null or last_seen_ms - last_seen_ms % ${HOUR} > counted_until_ms)`)
      .orderBy('counted_until_ms')
      .limit(limit);
    const rows = await (this.#database.dialect === 'postgres' ? due.forUpdate().skipLocked() : due).execute();
    for (const until_ms of new Set(rows.map((row) => row.until_ms))) {
      const ids = rows.filter((row) => row.until_ms === until_ms).map(({ sandbox_id }) => sandbox_id);
      await tx
        .updateTable('leases')
        .set({ counted_until_ms: until_ms })
        .where('sandbox_id', 'in', ids)
        .execute();
    }
    return rows;
  }

  /** Running sandboxes without a lease: metering was off when they were started. */
  async unmetered(): Promise<Omit<Lease, 'disk_mib'>[]> {
    return this.#database.db
      .selectFrom('sandboxes')
      .select(['sandbox_id', 'team_id', 'memory_mib', 'cpu_millis'])
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
