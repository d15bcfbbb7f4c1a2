import type { SqliteDatabase, SqliteStatement } from 'kysely';

/** So many statements are kept; the one used longest ago makes room. */
const KEPT_STATEMENTS = 256;

/** Keeps what SQLite has prepared: planning a statement costs about as much as running it. */
export function preparingOnce(database: SqliteDatabase): SqliteDatabase {
  const kept = new Map<string, SqliteStatement>();
  return {
    close: () => database.close(),
    prepare(sql) {
      const statement = kept.get(sql) ?? database.prepare(sql);
      kept.delete(sql);
      kept.set(sql, statement);
      if (kept.size > KEPT_STATEMENTS) kept.delete(kept.keys().next().value as string);
      return statement;
    },
  };
}
