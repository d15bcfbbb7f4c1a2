import { type ColumnDataType, type Kysely, type Migration, type RawBuilder, sql } from 'kysely';
import type { Dialect, Tables } from './tables.ts';

/** The steps from an empty database to the present one, by name in their order; never changed once released. */
export function migrationsFor(dialect: Dialect): Record<string, Migration> {
  return {
    '001_tokens_and_sandboxes': { up: (db) => createSandboxes(db) },
    '002_outbox': { up: (db) => createOutbox(db, dialect) },
    '003_quotas': { up: (db) => createQuotas(db, dialect) },
    '004_usage': { up: (db) => createUsage(db, dialect) },
    '005_endpoint_keys': { up: (db) => hashEndpoints(db, dialect) },
    '006_usage_positions': { up: (db) => offsetPositions(db, dialect) },
  };
}

async function createSandboxes(db: Kysely<Tables>): Promise<void> {
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
  await indexed(db, 'sandboxes', 'sandboxes_team', ['team_id', 'created_at_ms'], 'deleted_at_ms is null');
  await indexed(db, 'sandboxes', 'sandboxes_active', ['team_id'], "status in ('starting', 'running')");
  await indexed(db, 'sandboxes', 'sandboxes_operation', ['operation_until_ms'], 'operation is not null');
  await indexed(db, 'sandboxes', 'sandboxes_expiry', ['expires_at_ms'], 'expires_at_ms is not null');
  await indexed(
    db,
    'sandboxes',
    'sandboxes_hard_expiry',
    ['hard_expires_at_ms'],
    'hard_expires_at_ms is not null',
  );
  await indexed(
    db,
    'sandboxes',
    'sandboxes_terminating',
    ['updated_at_ms'],
    "status = 'terminating' and deleted_at_ms is null",
  );
  await indexed(db, 'sandboxes', 'sandboxes_deleted', ['deleted_at_ms'], 'deleted_at_ms is not null');
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
  await indexed(db, 'idempotency_keys', 'idempotency_keys_age', ['created_at_ms']);
}

async function createOutbox(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await counted(db, dialect, 'outbox', 'id')
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
  await indexed(db, 'outbox', 'outbox_due', ['endpoint', 'due_ms', 'id'], 'due_ms is not null');
  await indexed(db, 'outbox', 'outbox_deadline', ['endpoint', 'deadline_ms'], 'due_ms > 0');
  await indexed(db, 'outbox', 'outbox_probe', ['endpoint', 'probe_ms'], 'due_ms > 0');
  await indexed(db, 'outbox', 'outbox_age', ['created_at_ms'], 'due_ms is not null');
  await indexed(db, 'outbox', 'outbox_finished', ['finished_at_ms'], 'due_ms is null');
  await indexed(db, 'outbox', 'outbox_team', ['team_id', 'id']);
  await indexed(db, 'outbox', 'outbox_team_state', ['team_id', 'state', 'id']);
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
 * An endpoint was its URL without the query, which may be longer than what PostgreSQL's index holds: it becomes the
 * SHA-256 of that, as `endpointKey` makes it. Owners keep what is theirs until their leases end.
 */
async function hashEndpoints(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const key =
    dialect === 'postgres'
      ? sql`encode(sha256(convert_to(endpoint, 'UTF8')), 'hex')`
      : sql`endpoint_key(endpoint)`;
  for (const table of ['outbox', 'outbox_endpoints']) {
    await sql`update ${sql.table(table)} set endpoint = ${key} where endpoint like '%://%'`.execute(db);
  }
}

async function createQuotas(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
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
 * Locks a team and counts its active sandboxes. In a function, because every statement of it sees what was committed
 * before it began, the second all that was while the first waited; and its plans are made once a connection. The lock
 * is none on a row: that would be a write.
 */
async function createCount(db: Kysely<Tables>): Promise<void> {
  await sql`
    create function locked_active_sandboxes(team text) returns bigint language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(hashtextextended(team, 0));
      return (select count(*) from sandboxes where team_id = team and status in ('starting', 'running'));
    end $$`.execute(db);
}

async function createUsage(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
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
  await counted(db, dialect, 'usage_windows', 'seq')
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
  await indexed(db, 'usage_windows', 'usage_windows_order', ['team_id', 'xid', 'seq']);
}

/**
 * Positions are numbers of transactions and an offset, which moves them on where a restored database counts anew. The
 * horizon is below everything that may still be written.
 */
async function offsetPositions(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  if (dialect === 'sqlite') return;
  const offset = sql`coalesce((select value::bigint from settings where key = 'usage_offset'), 0)`;
  await sql`create or replace function usage_position() returns bigint language sql volatile as $$
    select pg_current_xact_id()::text::bigint + ${offset} $$`.execute(db);
  await sql`create or replace function usage_horizon() returns bigint language sql stable as $$
    select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + ${offset} $$`.execute(db);
  await sql`alter table usage_windows alter column xid set default usage_position()`.execute(db);
}

/** A table whose rows are numbered as they are added, by numbers that are never used again. */
function counted(db: Kysely<Tables>, dialect: Dialect, table: string, number: string) {
  const type: ColumnDataType = dialect === 'postgres' ? 'bigserial' : 'integer';
  return db.schema
    .createTable(table)
    .addColumn(number, type, (column) =>
      dialect === 'postgres' ? column.primaryKey() : column.primaryKey().autoIncrement(),
    );
}

async function indexed(
  db: Kysely<Tables>,
  table: string,
  name: string,
  columns: string[],
  condition?: string,
): Promise<void> {
  const index = db.schema.createIndex(name).on(table).columns(columns);
  await (condition ? index.where(sql.raw<boolean>(condition)) : index).execute();
}
