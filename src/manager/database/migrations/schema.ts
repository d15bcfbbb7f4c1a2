import { type ColumnDataType, type Kysely, sql } from 'kysely';
import type { Dialect, Tables } from '../tables.ts';

/** Starts a table whose rows are numbered as they are added. Numbers are never reused. */
export function numberedTable(db: Kysely<Tables>, dialect: Dialect, table: string, number: string) {
  const type: ColumnDataType = dialect === 'postgres' ? 'bigserial' : 'integer';
  return db.schema
    .createTable(table)
    .addColumn(number, type, (column) =>
      dialect === 'postgres' ? column.primaryKey() : column.primaryKey().autoIncrement(),
    );
}

/** Creates an index; with `condition`, SQL text, a partial one. */
export async function createIndex(
  db: Kysely<Tables>,
  table: string,
  name: string,
  columns: string[],
  condition?: string,
): Promise<void> {
  const index = db.schema.createIndex(name).on(table).columns(columns);
  await (condition ? index.where(sql.raw<boolean>(condition)) : index).execute();
}
