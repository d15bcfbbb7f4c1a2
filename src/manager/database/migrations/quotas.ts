import { type Kysely, sql } from 'kysely';
import type { Dialect, Tables } from '../tables.ts';

/** Migration 003: quota policies and settings. */
export async function createQuotas(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('quota_policies')
    .addColumn('scope', 'text', (column) => column.notNull())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('dimension', 'text', (column) => column.notNull())
    .addColumn('limit_value', 'bigint', (column) => column.notNull())
    .addColumn('interval_ms', 'bigint')
    .addColumn('burst_value', 'bigint')
    .addColumn('source', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('quota_policies_key', ['scope', 'team_id', 'dimension'])
    .execute();
  await db.schema
    .createTable('settings')
    .addColumn('key', 'text', (column) => column.primaryKey())
    .addColumn('value', 'text', (column) => column.notNull())
    .execute();
  if (dialect === 'postgres') await createCount(db);
}

/**
 * Creates the function that locks a team and counts its active sandboxes. Each statement of a function sees what was
 * committed before that statement, so the count includes commits made while the lock was awaited; and a function is
 * planned once per connection. The lock is advisory, because a row lock would be a write.
 */
async function createCount(db: Kysely<Tables>): Promise<void> {
  await sql`
    create function locked_active_sandboxes(team text) returns bigint language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(hashtextextended(team, 0));
      return (select count(*) from sandboxes where team_id = team and status in ('starting', 'running'));
    end $$`.execute(db);
}
