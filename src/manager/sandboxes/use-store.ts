import { sql } from 'kysely';
import type { Database } from '../database/database.ts';
import type { Moment } from '../database/database-clock-store.ts';

/** A sandbox and how long ago it was last used, in ms. */
export interface Use {
  sandbox_id: string;
  ago_ms: number;
}

/** Most sandboxes of one statement: SQLite bounds its parameters. */
const CHUNK = 500;

/** When sandboxes were last used, as all replicas see it: in the time at which they are to be paused. */
export class UseStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Restarts the idle time of a running sandbox now; false if it is not running, or is being paused. */
  async restart(sandbox_id: string, { now }: Moment): Promise<boolean> {
    const restarted = await this.#database.db
      .updateTable('sandboxes')
      .set({
        idle_expires_at_ms: sql`case when idle_ttl_s > 0 then ${now} + idle_ttl_s * 1000 end`,
      })
      .where('sandbox_id', '=', sandbox_id)
      .where('status', '=', 'running')
      .where((where) => where.or([where('operation', 'is', null), where('operation', '!=', 'pausing')]))
      .returning('sandbox_id')
      .executeTakeFirst();
    return restarted !== undefined;
  }

  /** Notes later uses, as seen at a moment, of running sandboxes; returns the idle times, in seconds, of those that have one. */
  async note(uses: Use[], seen: Moment): Promise<Map<string, number>> {
    const idle_ttls = new Map<string, number>();
    for (let i = 0; i < uses.length; i += CHUNK) {
      for (const { sandbox_id, idle_ttl_s } of await this.#noteSome(uses.slice(i, i + CHUNK), seen)) {
        idle_ttls.set(sandbox_id, idle_ttl_s);
      }
    }
    return idle_ttls;
  }

  async #noteSome(uses: Use[], seen: Moment): Promise<{ sandbox_id: string; idle_ttl_s: number }[]> {
    const { db, dialect } = this.#database;
    const ago = new Map(uses.map(({ sandbox_id, ago_ms }) => [sandbox_id, ago_ms]));
    return db.transaction().execute(async (tx) => {
      const timed = tx
        .selectFrom('sandboxes')
        .select(['sandbox_id', 'idle_ttl_s'])
        .where('sandbox_id', 'in', [...ago.keys()])
        .where('status', '=', 'running')
        .where('idle_ttl_s', '>', 0)
        .orderBy('sandbox_id');
      // In one order, so that replicas that note the same sandboxes never wait for each other in a circle.
      const rows = await (dialect === 'postgres' ? timed.forUpdate() : timed).execute();
      if (rows.length === 0) return rows;
      const ends = rows.map(({ sandbox_id, idle_ttl_s }) => {
        return sql`(${sandbox_id}, ${seen.in(idle_ttl_s * 1000 - (ago.get(sandbox_id) ?? 0))})`;
      });
      await sql`update sandboxes set idle_expires_at_ms = used.column2 from (values ${sql.join(ends)}) as used
        where sandbox_id = used.column1 and (idle_expires_at_ms is null or idle_expires_at_ms < used.column2)`.execute(
        tx,
      );
      return rows;
    });
  }
}
