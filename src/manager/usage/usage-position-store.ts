import { sql } from 'kysely';
import type { Database, Transaction } from '../database/database.ts';
import type { Position } from './cursor.ts';

/** Names the lock under which positions are moved; any number that nobody else uses. */
const POSITIONS_LOCK = 7_205_760;
/** More than a cluster may have given out since it was dumped. Numbers hold some thousand of these exactly. */
const GAP = 2 ** 40;

const OFFSET = 'usage_offset';
const CLUSTER = 'usage_cluster';

/**
 * Where windows stand in the order of their commits: on PostgreSQL by the transaction that wrote them, on SQLite by
 * number. A database that was restored counts anew from less; cursors that were given out before must not read
 * nothing for it. Source: contract section 7, "The cursor follows commit order".
 */
export class UsagePositionStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * PostgreSQL, in another cluster than before: positions go on above all that were ever given out. Comes before the
   * first window of a start is written.
   */
  async goOn(): Promise<void> {
    const { db, dialect } = this.#database;
    if (dialect === 'sqlite') return;
    const cluster = await this.#cluster();
    await db.transaction().execute(async (tx) => {
      await sql`select pg_advisory_xact_lock(${POSITIONS_LOCK}::bigint)`.execute(tx);
      const known = await setting(tx, CLUSTER);
      if (known === cluster) return;
      const { rows } = await sql<{ last: number; next: number }>`
        select coalesce(max(xid), 0) as last, usage_position() as next from usage_windows`.execute(tx);
      const { last, next } = rows[0] as { last: number; next: number };
      if (known !== null || next <= last) {
        const offset = Number((await setting(tx, OFFSET)) ?? 0) + Math.max(last, next) + GAP - next;
        await set(tx, OFFSET, String(offset));
      }
      await set(tx, CLUSTER, cluster);
    });
  }

  /** Whether a position is one that this database has not given out yet. */
  async isAhead({ xid, seq }: Position): Promise<boolean> {
    const { db, dialect } = this.#database;
    const ahead =
      dialect === 'postgres'
        ? sql<{ is_ahead: number }>`select (${xid}::bigint >= usage_horizon())::int as is_ahead`
        : sql<{ is_ahead: number }>`
            select ${seq} > coalesce((select seq from sqlite_sequence where name = 'usage_windows'), 0) as is_ahead`;
    const { rows } = await ahead.execute(db);
    return rows[0]?.is_ahead === 1;
  }

  /** Names the cluster; a copy of its files has the same name, a restored dump another. */
  async #cluster(): Promise<string> {
    const { rows } = await sql<{ name: string }>`
      select system_identifier::text as name from pg_control_system()`.execute(this.#database.db);
    return rows[0]?.name ?? '';
  }
}

async function setting(tx: Transaction, key: string): Promise<string | null> {
  const row = await tx.selectFrom('settings').select('value').where('key', '=', key).executeTakeFirst();
  return row?.value ?? null;
}

async function set(tx: Transaction, key: string, value: string): Promise<void> {
  await tx
    .insertInto('settings')
    .values({ key, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute();
}
