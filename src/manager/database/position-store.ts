import { type RawBuilder, sql } from 'kysely';

import type { Position } from './cursor.ts';
import type { Database, Transaction } from './database.ts';
import type { Dialect } from './tables.ts';

/** Key of the advisory lock under which the offset is moved; any number that nothing else uses. */
const POSITIONS_LOCK = 7_205_760;
/** More ids than a cluster can use between a dump and its restore. A number holds thousands of these gaps exactly. */
const GAP = 2 ** 40;

const OFFSET = 'usage_offset';
const CLUSTER = 'usage_cluster';

/** The tables that are read in commit order. */
type OrderedTable = 'usage_windows' | 'events';

/**
 * The condition for rows after a position. SQLite, where every `xid` is 0, finds the first of them by an index only
 * where `seq` is compared by itself: of a row value that ends in the rowid it uses the columns before that.
 */
export function isAfter(dialect: Dialect, { xid, seq }: Position): RawBuilder<boolean> {
  return dialect === 'sqlite'
    ? sql<boolean>`xid = ${xid} and seq > ${seq}`
    : sql<boolean>`(xid, seq) > (${xid}, ${seq})`;
}

/** PostgreSQL: the condition for rows before which no row can appear any more. */
export function isComplete(): RawBuilder<boolean> {
  return sql<boolean>`xid < (select usage_horizon())`;
}

/**
 * The positions of rows in commit order: on PostgreSQL by the id of the transaction that wrote them, on SQLite by row
 * number. A restored database counts from a lower number again; older cursors must still find its new rows.
 * Source: contract section 7, "The cursor follows commit order".
 */
export class PositionStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * On PostgreSQL, in another cluster than before: moves positions above all that were ever given out. Must run before
   * the first row of a start is written. Errors: `unavailable`.
   */
  async advance(): Promise<void> {
    const { db, dialect } = this.#database;
    if (dialect === 'sqlite') return;
    const cluster = await this.#cluster();
    await db.transaction().execute(async (tx) => {
      await sql`select pg_advisory_xact_lock(${POSITIONS_LOCK}::bigint)`.execute(tx);
      const known = await setting(tx, CLUSTER);
      if (known === cluster) return;
      const { rows } = await sql<{ last: number; next: number }>`
        select greatest((select coalesce(max(xid), 0) from usage_windows), (select coalesce(max(xid), 0) from events))
          as last, usage_position() as next`.execute(tx);
      const { last, next } = rows[0] as { last: number; next: number };
      if (known !== null || next <= last) {
        const offset = Number((await setting(tx, OFFSET)) ?? 0) + Math.max(last, next) + GAP - next;
        await set(tx, OFFSET, String(offset));
      }
      await set(tx, CLUSTER, cluster);
    });
  }

  /** Whether a table of this database has not reached a position yet. Errors: `unavailable`. */
  async isAhead(table: OrderedTable, { xid, seq }: Position): Promise<boolean> {
    const { db, dialect } = this.#database;
    const ahead =
      dialect === 'postgres'
        ? sql<{ is_ahead: number }>`select (${xid}::bigint >= usage_horizon())::int as is_ahead`
        : sql<{ is_ahead: number }>`
            select ${seq} > coalesce((select seq from sqlite_sequence where name = ${table}), 0) as is_ahead`;
    const { rows } = await ahead.execute(db);
    return rows[0]?.is_ahead === 1;
  }

  /** The identifier of the cluster: a copy of its files keeps it, a restored dump has another. */
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
