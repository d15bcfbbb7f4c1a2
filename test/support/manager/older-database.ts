import { type Kysely, sql } from 'kysely';

/** What each migration since 007 has added: columns and what indexes them, or all of a table. */
const ADDED: [migration: string, table: string, columns: string[] | 'all', indexes?: string[]][] = [
  ['007', 'sandboxes', ['metadata']],
  ['008', 'sandboxes', ['bandwidth', 'disk_mib']],
  ['009', 'outbox_attempts', ['error_detail']],
  ['010', 'network_positions', 'all'],
  ['011', 'sandboxes', ['watch_ignore', 'webhook_events']],
  ['012', 'sandboxes', ['idle_ttl_s', 'idle_expires_at_ms'], ['sandboxes_idle_expiry']],
  ['013', 'sandbox_metadata', 'all'],
  ['014', 'events', 'all'],
  ['014', 'event_positions', 'all'],
  ['015', 'sandboxes', ['persistence']],
];

/** Makes a database one of before a migration, as far as later ones only added columns and tables. */
export async function undoFrom(db: Kysely<never>, migration: string): Promise<void> {
  await sql`delete from kysely_migration where name >= ${migration}`.execute(db);
  for (const [added_by, table, columns, indexes = []] of ADDED) {
    if (added_by < migration) continue;
    for (const index of indexes) await sql`drop index ${sql.ref(index)}`.execute(db);
    if (columns === 'all') await sql`drop table ${sql.table(table)}`.execute(db);
    else
      for (const column of columns) {
        await sql`alter table ${sql.table(table)} drop column ${sql.ref(column)}`.execute(db);
      }
  }
}
