import type { Migration } from 'kysely';
import type { Dialect } from '../tables.ts';
import { createTables } from './create-tables.ts';

/**
 * The migrations from an empty database to the current tables, which run in the order of their names. Until the first
 * release there is one: a change of the tables edits it and raises its number, so that databases of earlier builds are
 * refused rather than misread. From the first release on, a released migration is never changed or renamed, and a
 * change of the tables is a new one with the next number.
 */
export function migrationsFor(dialect: Dialect): Record<string, Migration> {
  return {
    '024_tables': { up: (db) => createTables(db, dialect) },
  };
}
