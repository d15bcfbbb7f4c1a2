import { sql } from 'kysely';
import type { Queries } from '../database/database.ts';
import type { Moment } from '../database/database-clock-store.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import { TRANSITIONS } from './transitions.ts';

/** A sandbox with an operation, and in how many ms the lease of the replica that carries it out ends. */
export type OperationInProgress = ManagedSandboxRow & { left_ms: number };

/** A sandbox that has expired by `now_ms`, in the database's time. */
export type ExpiredSandbox = ManagedSandboxRow & { now_ms: number };

/** What the periodic jobs of `housekeeping.ts` read and purge, over the sandboxes of all teams. */
export class HousekeepingStore {
  readonly #db: Queries;

  constructor(db: Queries) {
    this.#db = db;
  }

  /** Sandboxes with an operation in progress, of any replica. */
  async withOperation({ now }: Moment): Promise<OperationInProgress[]> {
    return this.#db
      .selectFrom('sandboxes')
      .selectAll()
      .select(sql<number>`coalesce(operation_until_ms, 0) - ${now}`.as('left_ms'))
      .where('operation', 'is not', null)
      .execute();
  }

  /** The ids of running and paused sandboxes without an operation, to be compared with the runtime. */
  async idsUp(): Promise<string[]> {
    const rows = await this.#db
      .selectFrom('sandboxes')
      .select('sandbox_id')
      .where('status', 'in', ['running', 'paused'])
      .where('operation', 'is', null)
      .execute();
    return rows.map(({ sandbox_id }) => sandbox_id);
  }

  /**
   * Up to `limit` sandboxes whose ttl, hard ttl or idle time has expired by `now`, except the `deferred`, with what time it is
   * (wall time in ms), and in how many ms the next one expires, null if no sandbox has a time left.
   */
  async expired(
    { now }: Moment,
    limit: number,
    deferred: string[],
  ): Promise<{ rows: ExpiredSandbox[]; next_in_ms: number | null }> {
    const rows = await this.#db
      .selectFrom('sandboxes')
      .selectAll()
      .select(now.as('now_ms'))
      .where('operation', 'is', null)
      .$if(deferred.length > 0, (query) => query.where('sandbox_id', 'not in', deferred))
      .where((where) =>
        where.or([
          where.and([where('status', '=', 'running'), where('expires_at_ms', '<=', now)]),
          where.and([where('status', '=', 'running'), where('idle_expires_at_ms', '<=', now)]),
          where.and([where('status', 'in', TRANSITIONS.delete.from), where('hard_expires_at_ms', '<=', now)]),
        ]),
      )
      .limit(limit)
      .execute();
    const left = (column: 'expires_at_ms' | 'idle_expires_at_ms' | 'hard_expires_at_ms') =>
      this.#db
        .selectFrom('sandboxes')
        .select(({ eb, fn }) => eb(fn.min(column), '-', now).as('left_ms'))
        .where(column, '>', now);
    const next = await left('expires_at_ms').where('status', '=', 'running').executeTakeFirst();
    const idle = await left('idle_expires_at_ms').where('status', '=', 'running').executeTakeFirst();
    const hard = await left('hard_expires_at_ms')
      .where('deleted_at_ms', 'is', null)
      .where('status', '!=', 'terminating')
      .executeTakeFirst();
    const times = [next?.left_ms, idle?.left_ms, hard?.left_ms].filter((time) => typeof time === 'number');
    return { rows, next_in_ms: times.length > 0 ? Math.min(...times) : null };
  }

  /** Deletes the rows of up to `limit` sandboxes that were gone before `before_ms`; returns how many. */
  async purge(before_ms: number, limit: number): Promise<number> {
    const gone = this.#db
      .selectFrom('sandboxes')
      .select('sandbox_id')
      .where('deleted_at_ms', '<', before_ms)
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
