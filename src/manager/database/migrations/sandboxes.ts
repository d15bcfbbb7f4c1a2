import { type Kysely, sql } from 'kysely';
import type { Dialect, Tables } from '../tables.ts';
import { createIndex } from './schema.ts';

/** Migration 001: tokens, teams, sandboxes and idempotency keys. */
export async function createSandboxes(db: Kysely<Tables>): Promise<void> {
  await db.schema
    .createTable('tokens')
    .addColumn('token_id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('scopes', 'text', (column) => column.notNull())
    .addColumn('is_internal', 'integer', (column) => column.notNull())
    .addColumn('token_hash', 'text', (column) => column.notNull().unique())
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('revoked_at_ms', 'bigint')
    .execute();
  await db.schema
    .createTable('teams')
    .addColumn('team_id', 'text', (column) => column.primaryKey())
    .execute();
  await db.schema
    .createTable('sandboxes')
    .addColumn('sandbox_id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('template_id', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('operation', 'text')
    .addColumn('operation_owner', 'text')
    .addColumn('operation_until_ms', 'bigint')
    .addColumn('auto_resume', 'integer', (column) => column.notNull())
    .addColumn('pod_name', 'text')
    .addColumn('runtime_generation', 'integer', (column) => column.notNull())
    .addColumn('memory_mib', 'bigint', (column) => column.notNull())
    .addColumn('cpu_millis', 'bigint', (column) => column.notNull())
    .addColumn('resources', 'text', (column) => column.notNull())
    .addColumn('network', 'text')
    .addColumn('webhook_url', 'text')
    .addColumn('webhook_secret_sealed', 'text')
    .addColumn('watch_dir', 'text')
    .addColumn('env_sealed', 'text')
    .addColumn('ttl_s', 'bigint', (column) => column.notNull())
    .addColumn('hard_ttl_s', 'bigint', (column) => column.notNull())
    .addColumn('expires_at_ms', 'bigint')
    .addColumn('hard_expires_at_ms', 'bigint')
    .addColumn('claimed_at_ms', 'bigint')
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('updated_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('deleted_at_ms', 'bigint')
    .addColumn('node', 'text', (column) => column.notNull())
    .execute();
  await createIndex(db, 'sandboxes', 'sandboxes_team', ['team_id', 'created_at_ms'], 'deleted_at_ms is null');
  await createIndex(db, 'sandboxes', 'sandboxes_active', ['team_id'], "status in ('starting', 'running')");
  await createIndex(db, 'sandboxes', 'sandboxes_operation', ['operation_until_ms'], 'operation is not null');
  await createIndex(db, 'sandboxes', 'sandboxes_expiry', ['expires_at_ms'], 'expires_at_ms is not null');
  await createIndex(
    db,
    'sandboxes',
    'sandboxes_hard_expiry',
    ['hard_expires_at_ms'],
    'hard_expires_at_ms is not null',
  );
  await createIndex(
    db,
    'sandboxes',
    'sandboxes_terminating',
    ['updated_at_ms'],
    "status = 'terminating' and deleted_at_ms is null",
  );
  await createIndex(db, 'sandboxes', 'sandboxes_deleted', ['deleted_at_ms'], 'deleted_at_ms is not null');
  await db.schema
    .createTable('idempotency_keys')
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('body_hash', 'text', (column) => column.notNull())
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('status_code', 'integer')
    .addColumn('answer', 'text')
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('idempotency_keys_key', ['team_id', 'key'])
    .execute();
  await createIndex(db, 'idempotency_keys', 'idempotency_keys_age', ['created_at_ms']);
}

/** Migration 007: the labels of sandboxes. */
export async function addMetadata(db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('sandboxes').addColumn('metadata', 'text').execute();
}

/** Migration 008: the bandwidth and disk of sandboxes. */
export async function addBandwidth(db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('sandboxes').addColumn('bandwidth', 'text').execute();
  await db.schema.alterTable('sandboxes').addColumn('disk_mib', 'bigint').execute();
}

/** Migration 011: what webhooks of sandboxes are limited to. */
export async function addWebhookLimits(db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('sandboxes').addColumn('watch_ignore', 'text').execute();
  await db.schema.alterTable('sandboxes').addColumn('webhook_events', 'text').execute();
}

/** Migration 012: the time after which a sandbox that nobody uses is paused. */
export async function addIdleTime(db: Kysely<Tables>): Promise<void> {
  const sandboxes = db.schema.alterTable('sandboxes');
  await sandboxes.addColumn('idle_ttl_s', 'bigint', (column) => column.notNull().defaultTo(0)).execute();
  await sandboxes.addColumn('idle_expires_at_ms', 'bigint').execute();
  await createIndex(
    db,
    'sandboxes',
    'sandboxes_idle_expiry',
    ['idle_expires_at_ms'],
    'idle_expires_at_ms is not null',
  );
}

/** Migration 013: the labels of sandboxes as lists find them. */
export async function indexMetadata(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('sandbox_metadata')
    .addColumn('sandbox_id', 'text', (column) =>
      column.notNull().references('sandboxes.sandbox_id').onDelete('cascade'),
    )
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('text', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('sandbox_metadata_key', ['sandbox_id', 'key'])
    .execute();
  await createIndex(db, 'sandbox_metadata', 'sandbox_metadata_pairs', [
    'team_id',
    'key',
    'text',
    'sandbox_id',
  ]);
  const pairs = sql.raw(dialect === 'sqlite' ? 'json_each(metadata)' : 'json_each_text(metadata::json)');
  await sql`insert into sandbox_metadata (sandbox_id, team_id, key, text)
    select sandbox_id, team_id, pairs.key, pairs.value from sandboxes, ${pairs} as pairs
    where metadata is not null and deleted_at_ms is null`.execute(db);
}

/** Migration 015: what of a sandbox's files outlives what it runs in. */
export async function addPersistence(db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('sandboxes').addColumn('persistence', 'text').execute();
}
