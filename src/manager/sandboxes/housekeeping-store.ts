import type { Queries } from '../database/database.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import { TRANSITIONS } from './transitions.ts';

/** What the periodic jobs of `housekeeping.ts` read and purge, over the sandboxes of all teams. */
export class HousekeepingStore {
  readonly #db: Queries;

  constructor(db: Queries) {
    this.#db = db;
  }

  /** Sandboxes with an operation in progress, of any replica. */
  async withOperation(): Promise<ManagedSandboxRow[]> {
    return this.#db.selectFrom('sandboxes').selectAll().where('operation', 'is not', null).execute();
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
   * Up to `limit` sandboxes whose ttl, hard ttl or idle time has expired, except the `deferred`, and when the next one expires. Times
   * are wall time in ms; `next_ms` is null if no sandbox has a time left.
   */
  async expired(
    now_ms: number,
    limit: number,
    deferred: string[],
  ): Promise<{ rows: ManagedSandboxRow[]; next_ms: number | null }> {
    const rows = await this.#db
      .selectFrom('sandboxes')
      .selectAll()
      .where('operation', 'is', null)
      .$if(deferred.length > 0, (query) => query.where('sandbox_id', 'not in', deferred))
      .where((where) =>
        where.or([
          where.and([where('status', '=', 'running'), where('expires_at_ms', '<=', now_ms)]),
          where.and([where('status', '=', 'running'), where('idle_expires_at_ms', '<=', now_ms)]),
          where.and([
            where('status', 'in', TRANSITIONS.delete.from),
            where('hard_expires_at_ms', '<=', now_ms),
          ]),
        ]),
      )
      .limit(limit)
      .execute();
    const next = await this.#db
      .selectFrom('sandboxes')
      .select(({ fn }) => fn.min('expires_at_ms').as('soft_ms'))
      .where('status', '=', 'running')
      .where('expires_at_ms', '>', now_ms)
      .executeTakeFirst();
    const idle = await this.#db
      .selectFrom('sandboxes')
      .select(({ fn }) => fn.min('idle_expires_at_ms').as('idle_ms'))
      .where('status', '=', 'running')
      .where('idle_expires_at_ms', '>', now_ms)
      .executeTakeFirst();
    const hard = await this.#db
      .selectFrom('sandboxes')
      .select(({ fn }) => fn.min('hard_expires_at_ms').as('hard_ms'))
      .where('deleted_at_ms', 'is', null)
      .where('status', '!=', 'terminating')
      .where('hard_expires_at_ms', '>', now_ms)
      .executeTakeFirst();
    const times = [next?.soft_ms, idle?.idle_ms, hard?.hard_ms].filter((time) => typeof time === 'number');
    return { rows, next_ms: times.length > 0 ? Math.min(...times) : null };
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
