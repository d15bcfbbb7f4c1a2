import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Dialect, Tables } from '../tables.ts';
import { createIndex, numberedTable } from './schema.ts';

/** Migration 004: metering leases and usage windows. */
export async function createUsage(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('leases')
    .addColumn('sandbox_id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('memory_mib', 'bigint', (column) => column.notNull())
    .addColumn('started_ms', 'bigint', (column) => column.notNull())
    .addColumn('counted_until_ms', 'bigint', (column) => column.notNull())
    .addColumn('heartbeat_ms', 'bigint', (column) => column.notNull())
    .execute();
  // Rows become visible in the order of commits, not of numbers: a reader stays below the oldest open transaction.
  const writer: RawBuilder<unknown> =
    dialect === 'postgres' ? sql`(pg_current_xact_id()::text::bigint)` : sql`0`;
  await numberedTable(db, dialect, 'usage_windows', 'seq')
    .addColumn('xid', 'bigint', (column) => column.notNull().defaultTo(writer))
    .addColumn('window_id', 'text', (column) => column.notNull().unique())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('region_id', 'text', (column) => column.notNull())
    .addColumn('cluster_id', 'text', (column) => column.notNull())
    .addColumn('window_type', 'text', (column) => column.notNull())
    .addColumn('subject_type', 'text', (column) => column.notNull())
    .addColumn('subject_id', 'text', (column) => column.notNull())
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('window_start_ms', 'bigint', (column) => column.notNull())
    .addColumn('window_end_ms', 'bigint', (column) => column.notNull())
    .addColumn('value', 'bigint', (column) => column.notNull())
    .addColumn('unit', 'text', (column) => column.notNull())
    .addColumn('recorded_at_ms', 'bigint', (column) => column.notNull())
    .execute();
  await createIndex(db, 'usage_windows', 'usage_windows_order', ['team_id', 'xid', 'seq']);
}

/**
 * Migration 006. A position is a transaction id plus an offset, which grows when a restored database starts counting
 * from a lower id. The horizon is below everything that may still be written.
 */
export async function offsetPositions(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  if (dialect === 'sqlite') return;
  const offset = sql`coalesce((select value::bigint from settings where key = 'usage_offset'), 0)`;
  await sql`create or replace function usage_position() returns bigint language sql volatile as $$
    select pg_current_xact_id()::text::bigint + ${offset} $$`.execute(db);
  await sql`create or replace function usage_horizon() returns bigint language sql stable as $$
    select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + ${offset} $$`.execute(db);
  await sql`alter table usage_windows alter column xid set default usage_position()`.execute(db);
}

/** Migration 010: how far the traffic of sandboxes is counted. */
export async function createNetworkPositions(db: Kysely<Tables>): Promise<void> {
  await db.schema
    .createTable('network_positions')
    .addColumn('sandbox_id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('usage', 'text', (column) => column.notNull())
    .addColumn('seen_ms', 'bigint', (column) => column.notNull())
    .addColumn('egress_counted', 'bigint', (column) => column.notNull())
    .addColumn('ingress_counted', 'bigint', (column) => column.notNull())
    .addColumn('counted_until_ms', 'bigint')
    .execute();
}
