import { sql } from 'kysely';
import type { Database } from '../database/database.ts';

/** A sandbox and when it was last used, in wall time in ms. */
export interface Use {
  sandbox_id: string;
  used_ms: number;
}

/** Most sandboxes of one statement: SQLite bounds its parameters. */
const CHUNK = 500;

/** When sandboxes were last used, as all replicas see it: in the time at which they are to be paused. */
export class UseStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Restarts the idle time of a running sandbox; false if it is not running, or is being paused. */
  async restart({ sandbox_id, used_ms }: Use): Promise<boolean> {
    const restarted = await this.#database.db
      .updateTable('sandboxes')
      .set({
        idle_expires_at_ms: sql`case when idle_ttl_s > 0 then cast(${used_ms} as bigint) + idle_ttl_s * 1000 end`,
      })
      .where('sandbox_id', '=', sandbox_id)
      .where('status', '=', 'running')
      .where((where) => where.or([where('operation', 'is', null), where('operation', '!=', 'pausing')]))
      .returning('sandbox_id')
      .executeTakeFirst();
    return restarted !== undefined;
  }

  /** Notes later uses of running sandboxes; returns the idle times, in seconds, of those that have one. */
  async note(uses: Use[]): Promise<Map<string, number>> {
    const idle_ttls = new Map<string, number>();
    for (let i = 0; i < uses.length; i += CHUNK) {
      for (const { sandbox_id, idle_ttl_s } of await this.#noteSome(uses.slice(i, i + CHUNK))) {
        idle_ttls.set(sandbox_id, idle_ttl_s);
      }
    }
    return idle_ttls;
  }

  async #noteSome(uses: Use[]): Promise<{ sandbox_id: string; idle_ttl_s: number }[]> {
    const { db, dialect } = this.#database;
    const used = new Map(uses.map(({ sandbox_id, used_ms }) => [sandbox_id, used_ms]));
    return db.transaction().execute(async (tx) => {
      const timed = tx
        .selectFrom('sandboxes')
        .select(['sandbox_id', 'idle_ttl_s'])
        .where('sandbox_id', 'in', [...used.keys()])
        .where('status', '=', 'running')
        .where('idle_ttl_s', '>', 0)
        .orderBy('sandbox_id');
      // In one order, so that replicas that note the same sandboxes never wait for each other in a circle.
      const rows = await (dialect === 'postgres' ? timed.forUpdate() : timed).execute();
      if (rows.length === 0) return rows;
      const ends = rows.map(({ sandbox_id, idle_ttl_s }) => {
        return sql`(${sandbox_id}, cast(${(used.get(sandbox_id) ?? 0) + idle_ttl_s * 1000} as bigint))`;
      });
      await sql`update sandboxes set idle_expires_at_ms = used.column2 from (values ${sql.join(ends)}) as used
        where sandbox_id = used.column1 and (idle_expires_at_ms is null or idle_expires_at_ms < used.column2)`.execute(
        tx,
      );
      return rows;
    });
  }
}
