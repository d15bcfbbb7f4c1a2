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

  /** The value of a key; null if it has none. */
  async find(key: string): Promise<string | null> {
    const row = await this.#db
      .selectFrom('settings')
      .select('value')
      .where('key', '=', key)
      .executeTakeFirst();
    return row?.value ?? null;
  }

  /** Stores a value in place of the present one. */
  async set(key: string, value: string): Promise<void> {
    await this.#db
      .insertInto('settings')
      .values({ key, value })
      .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
      .execute();
  }
}
