import type { Database, Transaction } from '../database/database.ts';
import { pagesById } from '../database/pages.ts';
import type { ManagedSandboxRow } from '../sandboxes/sandbox-store.ts';

const PAGE = 500;

/** What an operator does to records of sandboxes whose truth is elsewhere. */
export class OrphanStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The ids of all sandboxes that are not deleted, a page at a time. */
  ids(): AsyncGenerator<{ sandbox_id: string }[]> {
    return pagesById(PAGE, (after) =>
      this.#database.db
        .selectFrom('sandboxes')
        .select('sandbox_id')
        .where('deleted_at_ms', 'is', null)
        .where('sandbox_id', '>', after)
        .orderBy('sandbox_id')
        .limit(PAGE)
        .execute(),
    );
  }

  /** Removes the row of a sandbox that was deleted, so that it can have one again; whether there was one. */
  async forgetDeleted(tx: Transaction, sandbox_id: string): Promise<boolean> {
    const { numDeletedRows } = await tx
      .deleteFrom('sandboxes')
      .where('sandbox_id', '=', sandbox_id)
      .where('deleted_at_ms', 'is not', null)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  /** Lets the cleanup of a deleted sandbox go on although nothing of it was found; null if it is not being cleaned up. */
  async giveUp(sandbox_id: string): Promise<Pick<ManagedSandboxRow, 'sandbox_id'> | null> {
    const row = await this.#database.db
      .updateTable('sandboxes')
      .set({ operation: 'removing' })
      .where('sandbox_id', '=', sandbox_id)
      .where('operation', '=', 'cleaning')
      .returning('sandbox_id')
      .executeTakeFirst();
    return row ?? null;
  }
}
