import { type Kysely, sql } from 'kysely';
import type { Dialect, Tables } from '../tables.ts';
import { createIndex, numberedTable } from './schema.ts';

/** Migration 002: webhook records, their attempts, and the leases of endpoints. */
export async function createOutbox(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await numberedTable(db, dialect, 'outbox', 'id')
    .addColumn('event_id', 'text', (column) => column.notNull().unique())
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('event_type', 'text', (column) => column.notNull())
    .addColumn('sequence', 'bigint')
    .addColumn('endpoint', 'text', (column) => column.notNull())
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('headers', 'text', (column) => column.notNull())
    .addColumn('signatures', 'text')
    .addColumn('secret_sealed', 'text')
    .addColumn('body', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('due_ms', 'bigint')
    .addColumn('probe_ms', 'bigint', (column) => column.notNull())
    .addColumn('deadline_ms', 'bigint', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('failures', 'integer', (column) => column.notNull())
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('finished_at_ms', 'bigint')
    .execute();
  await createIndex(db, 'outbox', 'outbox_due', ['endpoint', 'due_ms', 'id'], 'due_ms is not null');
  await createIndex(db, 'outbox', 'outbox_deadline', ['endpoint', 'deadline_ms'], 'due_ms > 0');
  await createIndex(db, 'outbox', 'outbox_probe', ['endpoint', 'probe_ms'], 'due_ms > 0');
  await createIndex(db, 'outbox', 'outbox_age', ['created_at_ms'], 'due_ms is not null');
  await createIndex(db, 'outbox', 'outbox_finished', ['finished_at_ms'], 'due_ms is null');
  await createIndex(db, 'outbox', 'outbox_team', ['team_id', 'id']);
  await createIndex(db, 'outbox', 'outbox_team_state', ['team_id', 'state', 'id']);
  await db.schema
    .createTable('outbox_attempts')
    .addColumn('record_id', 'bigint', (column) => column.notNull())
    .addColumn('attempt', 'integer', (column) => column.notNull())
    .addColumn('started_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('duration_ms', 'double precision', (column) => column.notNull())
    .addColumn('status', 'integer')
    .addColumn('error', 'text')
    .addColumn('next_attempt_at_ms', 'bigint')
    .addColumn('response_body', 'text')
    .addPrimaryKeyConstraint('outbox_attempts_key', ['record_id', 'attempt'])
    .execute();
  await db.schema
    .createTable('outbox_endpoints')
    .addColumn('endpoint', 'text', (column) => column.primaryKey())
    .addColumn('owner', 'text')
    .addColumn('fence', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('outbox_replicas')
    .addColumn('owner', 'text', (column) => column.primaryKey())
    .addColumn('lease_until_ms', 'bigint', (column) => column.notNull())
    .execute();
}

/**
 * Migration 005. An endpoint was its URL without the query, which may be too long for PostgreSQL's index. It becomes
 * the SHA-256 of that text, as `endpointKey` computes it. Owners keep their endpoints until their leases end.
 */
export async function hashEndpoints(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const key =
    dialect === 'postgres'
      ? sql`encode(sha256(convert_to(endpoint, 'UTF8')), 'hex')`
      : sql`endpoint_key(endpoint)`;
  for (const table of ['outbox', 'outbox_endpoints']) {
    await sql`update ${sql.table(table)} set endpoint = ${key} where endpoint like '%://%'`.execute(db);
  }
}

/** Migration 009: why attempts failed. */
export async function addErrorDetail(db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('outbox_attempts').addColumn('error_detail', 'text').execute();
}
