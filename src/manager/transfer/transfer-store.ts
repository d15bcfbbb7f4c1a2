import type { Selectable } from 'kysely';
import type { Database, Transaction } from '../database/database.ts';
import type { TransferCountTable } from '../database/tables.ts';

/** A row of `transfer_counts`. */
export type TransferCountRow = Selectable<TransferCountTable>;

/**
 * Counts of carried bytes that are in no window yet. A replica writes the whole count each time, so that one whose commit
 * nobody knows of is simply written again. Queries reject with `unavailable` if the database is.
 */
export class TransferStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Runs `work` in one transaction. */
  write<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#database.db.transaction().execute(work);
  }

  /** The teams of sandboxes, of those that are recorded. */
  async teams(sandbox_ids: string[]): Promise<Map<string, string>> {
    if (sandbox_ids.length === 0) return new Map();
    const rows = await this.#database.db
      .selectFrom('sandboxes')
      .select(['sandbox_id', 'team_id'])
      .where('sandbox_id', 'in', sandbox_ids)
      .execute();
    return new Map(rows.map(({ sandbox_id, team_id }) => [sandbox_id, team_id]));
  }

  /** Keeps counts; returns the values of those windows that another replica has closed meanwhile, whose counts are not kept. */
  async keep(tx: Transaction, rows: TransferCountRow[]): Promise<Map<string, number>> {
    const ids = rows.map(({ window_id }) => window_id);
    const there = await this.#locked(tx, ids);
    const absent = ids.filter((id) => !there.has(id));
    const closed = await this.#closed(tx, absent);
    const kept = rows.filter(({ window_id }) => !closed.has(window_id));
    if (kept.length > 0) {
      await tx
        .insertInto('transfer_counts')
        .values(kept)
        .onConflict((conflict) =>
          conflict.column('window_id').doUpdateSet((eb) => ({
            bytes: eb.ref('excluded.bytes'),
            seen_ms: eb.ref('excluded.seen_ms'),
          })),
        )
        .execute();
    }
    return closed;
  }

  /** Removes counts, to be put into windows in the same transaction; only those that are still there are returned. */
  async take(tx: Transaction, window_ids: string[]): Promise<TransferCountRow[]> {
    if (window_ids.length === 0) return [];
    return tx.deleteFrom('transfer_counts').where('window_id', 'in', window_ids).returningAll().execute();
  }

  /** Counts that have not grown since `before_ms`, oldest first. */
  async unseenSince(before_ms: number, limit: number): Promise<string[]> {
    const rows = await this.#database.db
      .selectFrom('transfer_counts')
      .select('window_id')
      .where('seen_ms', '<', before_ms)
      .orderBy('seen_ms')
      .limit(limit)
      .execute();
    return rows.map(({ window_id }) => window_id);
  }

  async #locked(tx: Transaction, ids: string[]): Promise<Set<string>> {
    const rows = tx.selectFrom('transfer_counts').select('window_id').where('window_id', 'in', ids);
    // On SQLite a transaction holds the write lock already.
    const locked = this.#database.dialect === 'sqlite' ? rows : rows.orderBy('window_id').forUpdate();
    return new Set((await locked.execute()).map(({ window_id }) => window_id));
  }

  async #closed(tx: Transaction, ids: string[]): Promise<Map<string, number>> {
    if (ids.length === 0) return new Map();
    const rows = await tx
      .selectFrom('usage_windows')
      .select(['window_id', 'value'])
      .where('window_id', 'in', ids)
      .execute();
    return new Map(rows.map(({ window_id, value }) => [window_id, value]));
  }
}
