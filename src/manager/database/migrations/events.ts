import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Dialect, Tables } from '../tables.ts';
import { createIndex, numberedTable } from './schema.ts';

/** Migration 014: the feed of lifecycle events, and how far those of each sandbox are in it. */
export async function createEvents(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const writer: RawBuilder<unknown> = dialect === 'postgres' ? sql`usage_position()` : sql`0`;
  await numberedTable(db, dialect, 'events', 'seq')
    .addColumn('xid', 'bigint', (column) => column.notNull().defaultTo(writer))
    .addColumn('event_id', 'text', (column) => column.notNull().unique())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('event_type', 'text', (column) => column.notNull())
    .addColumn('sequence', 'bigint')
    .addColumn('body', 'text', (column) => column.notNull())
    .addColumn('recorded_at_ms', 'bigint', (column) => column.notNull())
    .execute();
  await createIndex(db, 'events', 'events_order', ['xid', 'seq']);
  await createIndex(db, 'events', 'events_team', ['team_id', 'xid', 'seq']);
  await createIndex(db, 'events', 'events_team_type', ['team_id', 'event_type', 'xid', 'seq']);
  await createIndex(db, 'events', 'events_sandbox', ['sandbox_id', 'xid', 'seq']);
  await createIndex(db, 'events', 'events_age', ['recorded_at_ms']);
  await db.schema
    .createTable('event_positions')
    .addColumn('sandbox_id', 'text', (column) => column.primaryKey())
    .addColumn('sequence', 'bigint', (column) => column.notNull())
    .addColumn('due_ms', 'bigint')
    .execute();
  await createIndex(db, 'event_positions', 'event_positions_due', ['due_ms'], 'due_ms is not null');
}
