import { sql } from 'kysely';
import type { Queries } from '../database/database.ts';
import type { Moment } from '../database/database-clock-store.ts';
import { pagesById } from '../database/pages.ts';
import type { LeasedOperation, ManagedSandboxRow } from './sandbox-store.ts';

/** An operation of any replica, and in how many ms the lease of the one that carries it out ends. */
export type OperationInProgress = LeasedOperation &
  Pick<ManagedSandboxRow, 'operation_owner'> & { left_ms: number };

/** A running or paused sandbox, the operation in progress, and the number of the last one. */
export type UpSandbox = Pick<ManagedSandboxRow, 'sandbox_id' | 'status' | 'operation' | 'operation_fence'>;

/** A sandbox that has expired by `now_ms`, in the database's time. */
export type ExpiredSandbox = Pick<
  ManagedSandboxRow,
  'sandbox_id' | 'team_id' | 'expires_at_ms' | 'hard_expires_at_ms'
> & { now_ms: number };

/** Rows that one query reads, so that no job holds up what else the manager answers. */
const PAGE = 500;

// Each must be written like the condition of its index.
const IS_UP = sql<boolean>`status in ('running', 'paused')`;
const IS_RUNNING = sql<boolean>`status = 'running'`;
const IS_DELETABLE = sql<boolean>`status in ('running', 'paused', 'failed')`;

/** The times that end, and whose do. */
const ENDS = [
  { column: 'expires_at_ms', condition: IS_RUNNING },
  { column: 'idle_expires_at_ms', condition: IS_RUNNING },
  { column: 'hard_expires_at_ms', condition: IS_DELETABLE },
] as const;

/** What the periodic jobs of `housekeeping.ts` read and purge, over the sandboxes of all teams. */
export class HousekeepingStore {
  readonly #db: Queries;

  constructor(db: Queries) {
    this.#db = db;
  }

  /** The operations in progress, of any replica, a page at a time. */
  operations(moment: () => Moment): AsyncGenerator<OperationInProgress[]> {
    return pagesById(PAGE, (after) => {
      const { now } = moment();
      return this.#db
        .selectFrom('sandboxes')
        .select(['sandbox_id', 'operation', 'operation_owner', 'operation_until_ms', 'operation_fence'])
        .select(sql<number>`coalesce(operation_until_ms, 0) - ${now}`.as('left_ms'))
        .where('operation', 'is not', null)
        .where('sandbox_id', '>', after)
        .orderBy('sandbox_id')
        .limit(PAGE)
        .execute();
    });
  }

  /** Running and paused sandboxes, to be compared with the runtime, a page at a time. */
  up(): AsyncGenerator<UpSandbox[]> {
    return pagesById(PAGE, (after) =>
      this.#db
        .selectFrom('sandboxes')
        .select(['sandbox_id', 'status', 'operation', 'operation_fence'])
        .where(IS_UP)
        .where('sandbox_id', '>', after)
        .orderBy('sandbox_id')
        .limit(PAGE)
        .execute(),
    );
  }

  /**
   * Up to `limit` sandboxes whose ttl, hard ttl or idle time has expired by `now`, except the `deferred`, with what time it is
   * (wall time in ms), and in how many ms the next one expires, null if no sandbox has a time left.
   */
  async expired(
    moment: Moment,
    limit: number,
    deferred: string[],
  ): Promise<{ rows: ExpiredSandbox[]; next_in_ms: number | null }> {
    const next_in_ms = await this.#left(moment, 'all');
    if (next_in_ms === null || next_in_ms > 0) return { rows: [], next_in_ms };
    const { now } = moment;
    const rows = await this.#db
      .selectFrom('sandboxes')
      .select(['sandbox_id', 'team_id', 'expires_at_ms', 'hard_expires_at_ms', now.as('now_ms')])
      .where('operation', 'is', null)
      .$if(deferred.length > 0, (query) => query.where('sandbox_id', 'not in', deferred))
      .where((where) =>
        where.or(ENDS.map(({ column, condition }) => where.and([condition, where(column, '<=', now)]))),
      )
      .limit(limit)
      .execute();
    return { rows, next_in_ms: await this.#left(moment, 'to come') };
  }

  /** In how many ms the first of all times ends, or has ended, or of those to come; null if there is none. */
  async #left({ now }: Moment, which: 'all' | 'to come'): Promise<number | null> {
    const limit = which === 'all' ? sql`is not null` : sql`> ${now}`;
    const firsts = ENDS.map(({ column, condition }) => {
      const time = sql.ref(column);
      return sql`select (select min(${time}) from sandboxes where ${condition} and ${time} ${limit}) - ${now} as left_ms`;
    });
    const { rows } = await sql<{ left_ms: number | null }>`
      select min(left_ms) as left_ms from (${sql.join(firsts, sql` union all `)}) as firsts`.execute(
      this.#db,
    );
    return rows[0]?.left_ms ?? null;
  }

  /** Deletes the rows of up to `limit` sandboxes that were gone before `before_ms`; returns how many. */
  async purge(before_ms: number, limit: number): Promise<number> {
    const gone = this.#db
      .selectFrom('sandboxes')
      .select('sandbox_id')
      .where('deleted_at_ms', '<', before_ms)
      .orderBy('deleted_at_ms')
      .limit(limit);
    return this.#db.transaction().execute(async (tx) => {
      const rows = await tx
        .deleteFrom('sandboxes')
        .where('sandbox_id', 'in', gone)
        .returning('sandbox_id')
        .execute();
      const ids = rows.map(({ sandbox_id }) => sandbox_id);
      if (ids.length === 0) return 0;
      await tx.deleteFrom('network_positions').where('sandbox_id', 'in', ids).execute();
      await tx.deleteFrom('event_positions').where('sandbox_id', 'in', ids).execute();
      return ids.length;
    });
  }
}
