import { type Kysely, sql } from 'kysely';

/** The columns that each migration since 007 has added. */
const ADDED: [migration: string, table: string, columns: string[]][] = [
  ['007', 'sandboxes', ['metadata']],
  ['008', 'sandboxes', ['bandwidth', 'disk_mib']],
  ['009', 'outbox_attempts', ['error_detail']],
];

/** Makes a database one of before a migration, as far as later ones only added columns. */
export async function undoFrom(db: Kysely<never>, migration: string): Promise<void> {
  await sql`delete from kysely_migration where name >= ${migration}`.execute(db);
  for (const [added_by, table, columns] of ADDED) {
    if (added_by < migration) continue;
    for (const column of columns) {
      await sql`alter table ${sql.table(table)} drop column ${sql.ref(column)}`.execute(db);
    }
  }
}
