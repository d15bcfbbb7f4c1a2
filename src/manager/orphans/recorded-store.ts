import type { Queries } from '../database/database.ts';

const PAGE = 500;

/** Which sandboxes the database knows. */
export class RecordedStore {
  readonly #db: Queries;

  constructor(db: Queries) {
    this.#db = db;
  }

  /** Those of these ids that have a row and are not deleted; ids alone are read, some hundred at a time. */
  async recorded(sandbox_ids: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    for (let from = 0; from < sandbox_ids.length; from += PAGE) {
      const rows = await this.#db
        .selectFrom('sandboxes')
        .select('sandbox_id')
        .where('sandbox_id', 'in', sandbox_ids.slice(from, from + PAGE))
        .where('deleted_at_ms', 'is', null)
        .execute();
      for (const { sandbox_id } of rows) found.add(sandbox_id);
    }
    return found;
  }
}
