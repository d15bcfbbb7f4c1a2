import { type Selectable, sql } from 'kysely';
import type { Database, Queries, Transaction } from '../database/database.ts';
import { pagesById } from '../database/pages.ts';
import type { NetworkPositionTable } from '../database/tables.ts';

/** A row of `network_positions`. */
export type NetworkPositionRow = Selectable<NetworkPositionTable>;

/** Rows that one query reads. */
const PAGE = 500;

/** A running sandbox with its position, or null if it has none. */
export interface WatchedSandbox {
  sandbox_id: string;
  team_id: string;
  position: NetworkPositionRow | null;
}

/** How far the traffic of sandboxes is counted, and what was last seen of it. Queries reject with `unavailable` if the database is. */
export class NetworkPositionStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Runs `work` in one transaction. */
  write<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#database.db.transaction().execute(work);
  }

  /** The running sandboxes of all nodes, a page at a time. */
  async *running(): AsyncGenerator<WatchedSandbox[]> {
    const pages = pagesById(PAGE, (after) =>
      this.#database.db
        .selectFrom('sandboxes')
        .leftJoin('network_positions as position', 'position.sandbox_id', 'sandboxes.sandbox_id')
        .select(['sandboxes.sandbox_id', 'sandboxes.team_id', 'usage', 'seen_ms'])
        .select(['egress_counted', 'ingress_counted', 'counted_until_ms'])
        .where('status', '=', 'running')
        // As the condition of the index is written.
        .where(sql<boolean>`status in ('running', 'paused')`)
        .where('sandboxes.sandbox_id', '>', after)
        .orderBy('sandboxes.sandbox_id')
        .limit(PAGE)
        .execute(),
    );
    for await (const rows of pages) yield rows.map(watched);
  }

  /** The positions of these sandboxes, of those that have one. */
  async find(sandbox_ids: string[], queries: Queries = this.#database.db): Promise<NetworkPositionRow[]> {
    if (sandbox_ids.length === 0) return [];
    return queries
      .selectFrom('network_positions')
      .selectAll()
      .where('sandbox_id', 'in', sandbox_ids)
      .execute();
  }

  /** A position that no other transaction can change until this one ends; null if there is none. */
  async lock(tx: Transaction, sandbox_id: string): Promise<NetworkPositionRow | null> {
    const row = tx.selectFrom('network_positions').selectAll().where('sandbox_id', '=', sandbox_id);
    // On SQLite a transaction holds the write lock already.
    const locked = this.#database.dialect === 'sqlite' ? row : row.forUpdate();
    return (await locked.executeTakeFirst()) ?? null;
  }

  /** Adds a position; false if there is one. */
  async insert(tx: Transaction, row: NetworkPositionRow): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await tx
      .insertInto('network_positions')
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return numInsertedOrUpdatedRows === 1n;
  }

  /** Changes a position. */
  async update(tx: Transaction, { sandbox_id, ...row }: NetworkPositionRow): Promise<void> {
    await tx.updateTable('network_positions').set(row).where('sandbox_id', '=', sandbox_id).execute();
  }

  /** What passes from now on is in no window, because metering is off. */
  async stopCounting(): Promise<void> {
    await this.#database.db
      .updateTable('network_positions')
      .set({ counted_until_ms: null })
      .where('counted_until_ms', 'is not', null)
      .execute();
  }
}

/** A running sandbox as it is read, with the columns of its position, or null where it has none. */
type RunningRow = Pick<NetworkPositionRow, 'sandbox_id' | 'team_id'> & {
  [Column in Exclude<keyof NetworkPositionRow, 'sandbox_id' | 'team_id'>]: NetworkPositionRow[Column] | null;
};

function watched(row: RunningRow): WatchedSandbox {
  const { sandbox_id, team_id } = row;
  return { sandbox_id, team_id, position: row.usage === null ? null : (row as NetworkPositionRow) };
}
