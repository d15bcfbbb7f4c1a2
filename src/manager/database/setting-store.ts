import type { Queries } from './database.ts';

/** Named values that belong to the database as a whole. */
export class SettingStore {
  readonly #db: Queries;

  constructor(db: Queries) {
    this.#db = db;
  }

  /** Stores a value unless the key already has one; returns the stored value. */
  async keep(key: string, value: string): Promise<string> {
    await this.#db
      .insertInto('settings')
      .values({ key, value })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const { value: kept } = await this.#db
      .selectFrom('settings')
      .select('value')
      .where('key', '=', key)
      .executeTakeFirstOrThrow();
    return kept;
  }
}
