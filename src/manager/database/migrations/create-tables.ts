import { type ColumnDataType, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Dialect, Tables } from '../tables.ts';

/** Creates all tables, with the functions that PostgreSQL needs; `../tables.ts` says what each column holds. */
export async function createTables(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await createTokens(db);
  await createSandboxes(db);
  await createOutbox(db, dialect);
  await createQuotas(db, dialect);
  if (dialect === 'postgres') await createPositions(db);
  await createUsage(db, dialect);
  await createEvents(db, dialect);
}

/** Tokens, teams and settings. */
async function createTokens(db: Kysely<Tables>): Promise<void> {
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
    .createTable('settings')
    .addColumn('key', 'text', (column) => column.primaryKey())
    .addColumn('value', 'text', (column) => column.notNull())
    .execute();
}

/** Sandboxes, the labels by which lists find them, and the idempotency keys of claims. */
async function createSandboxes(db: Kysely<Tables>): Promise<void> {
  await db.schema
    .createTable('sandboxes')
    .addColumn('sandbox_id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('template_id', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('operation', 'text')
    .addColumn('operation_owner', 'text')
    .addColumn('operation_until_ms', 'bigint')
    .addColumn('operation_fence', 'bigint', (column) => column.notNull())
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
    .addColumn('env_names_sealed', 'text')
    .addColumn('ttl_s', 'bigint', (column) => column.notNull())
    .addColumn('hard_ttl_s', 'bigint', (column) => column.notNull())
    .addColumn('expires_at_ms', 'bigint')
    .addColumn('hard_expires_at_ms', 'bigint')
    .addColumn('claimed_at_ms', 'bigint')
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('updated_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('deleted_at_ms', 'bigint')
    .addColumn('node', 'text', (column) => column.notNull())
    .addColumn('metadata', 'text')
    .addColumn('bandwidth', 'text')
    .addColumn('disk_mib', 'bigint')
    .addColumn('watch_ignore', 'text')
    .addColumn('webhook_events', 'text')
    .addColumn('webhook_retry', 'text')
    .addColumn('idle_ttl_s', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('idle_expires_at_ms', 'bigint')
    .addColumn('persistence', 'text')
    .addColumn('held_mib', 'bigint')
    .execute();
  // A list finds its page and its count in this index alone, whatever it filters by; the sums by status too.
  await createIndex(
    db,
    'sandboxes',
    'sandboxes_team',
    // SQLite finds in an index what its condition says only where the column is in it.
    ['team_id', 'created_at_ms', 'sandbox_id', 'status', 'template_id', 'deleted_at_ms'],
    'deleted_at_ms is null',
  );
  await createIndex(db, 'sandboxes', 'sandboxes_active', ['team_id'], "status in ('starting', 'running')");
  // What all of them take is summed up at every claim.
  await createIndex(
    db,
    'sandboxes',
    'sandboxes_taken',
    [
      ...['team_id', 'status', 'operation', 'memory_mib', 'held_mib', 'cpu_millis', 'disk_mib'],
      ...['sandbox_id', 'deleted_at_ms'],
    ],
    'deleted_at_ms is null',
  );
  await createIndex(
    db,
    'sandboxes',
    'sandboxes_up',
    ['sandbox_id', 'operation'],
    "status in ('running', 'paused')",
  );
  await createIndex(db, 'sandboxes', 'sandboxes_operation', ['sandbox_id'], 'operation is not null');
  for (const [name, time, statuses] of [
    ['sandboxes_expiry', 'expires_at_ms', "status = 'running'"],
    ['sandboxes_idle_expiry', 'idle_expires_at_ms', "status = 'running'"],
    ['sandboxes_hard_expiry', 'hard_expires_at_ms', "status in ('running', 'paused', 'failed')"],
  ] as const) {
    await createIndex(db, 'sandboxes', name, [time], `${time} is not null and ${statuses}`);
  }
  await createIndex(db, 'sandboxes', 'sandboxes_deleted', ['deleted_at_ms'], 'deleted_at_ms is not null');
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
  await createIndex(db, 'idempotency_keys', 'idempotency_keys_sandbox', ['sandbox_id']);
}

/** Webhook records, their attempts, and the leases of endpoints. */
async function createOutbox(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
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
    .addColumn('retry', 'text', (column) => column.notNull())
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
  for (const filter of ['state', 'event_type', 'sandbox_id', 'endpoint'] as const) {
    await createIndex(db, 'outbox', `outbox_team_${filter}`, ['team_id', filter, 'id']);
  }
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
    .addColumn('error_detail', 'text')
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

/** Quota policies. */
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

/**
 * Creates the functions that order rows by commit. Rows become visible in the order of commits, not of numbers, so a
 * reader stays below the oldest open transaction. A position is a transaction id plus an offset, which grows when a
 * restored database starts counting from a lower id; the horizon is below everything that may still be written.
 *
 * Ids are those of the whole cluster: a transaction that certainly belongs to another database writes none of these rows,
 * and holds up nobody. Each holds a lock on its own id from a moment after it has one to its end, and one whose lock is not
 * in sight counts as one of this database. The processes of others are read before the locks: one that has taken over the number
 * of an ended process of this database cannot be taken for that. In most queries nothing is open, and none of this is read.
 */
async function createPositions(db: Kysely<Tables>): Promise<void> {
  const offset = sql`coalesce((select value::bigint from settings where key = 'usage_offset'), 0)`;
  await sql`create function usage_position() returns bigint language sql volatile as $$
    select pg_current_xact_id()::text::bigint + ${offset} $$`.execute(db);
  await sql`create function usage_horizon() returns bigint language plpgsql stable as $$
    declare
      seen constant pg_snapshot := pg_current_snapshot();
      next constant bigint := pg_snapshot_xmax(seen)::text::bigint;
      oldest bigint := pg_snapshot_xmin(seen)::text::bigint;
      others integer[];
      theirs bigint[];
    begin
      if oldest < next then
        others := array(select pid from pg_stat_activity
          where datid <> (select oid from pg_database where datname = current_database()));
        theirs := array(select transactionid::text::bigint from pg_locks
          where locktype = 'transactionid' and mode = 'ExclusiveLock' and granted and pid = any(others));
        select coalesce(min(id), next) into oldest from
          (select each::text::bigint as id from pg_snapshot_xip(seen) as each) as ids
          where id % 4294967296 <> all(theirs);
      end if;
      return oldest + ${offset};
    end $$`.execute(db);
}

/** The position of the transaction that writes a row; SQLite has one writer, and its rows need none. */
function position(dialect: Dialect): RawBuilder<unknown> {
  return dialect === 'postgres' ? sql`usage_position()` : sql`0`;
}

/** Memory leases, closed usage windows, and how far the traffic of sandboxes is counted. */
async function createUsage(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await db.schema
    .createTable('leases')
    .addColumn('sandbox_id', 'text', (column) => column.primaryKey())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('memory_mib', 'bigint', (column) => column.notNull())
    .addColumn('cpu_millis', 'bigint', (column) => column.notNull())
    .addColumn('started_ms', 'bigint', (column) => column.notNull())
    .addColumn('counted_until_ms', 'bigint', (column) => column.notNull())
    .addColumn('last_seen_ms', 'bigint')
    .execute();
  await createIndex(db, 'leases', 'leases_counted', ['counted_until_ms']);
  await createIndex(
    db,
    'leases',
    'leases_unseen',
    ['sandbox_id', 'last_seen_ms'],
    'last_seen_ms is not null',
  );
  await numberedTable(db, dialect, 'usage_windows', 'seq')
    .addColumn('xid', 'bigint', (column) => column.notNull().defaultTo(position(dialect)))
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
  await createIndex(db, 'usage_windows', 'usage_windows_type', ['team_id', 'window_type', 'xid', 'seq']);
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
  await db.schema
    .createTable('transfer_counts')
    .addColumn('window_id', 'text', (column) => column.primaryKey())
    .addColumn('sandbox_id', 'text', (column) => column.notNull())
    .addColumn('team_id', 'text', (column) => column.notNull())
    .addColumn('bytes', 'bigint', (column) => column.notNull())
    .addColumn('started_ms', 'bigint', (column) => column.notNull())
    .addColumn('seen_ms', 'bigint', (column) => column.notNull())
    .execute();
  await createIndex(db, 'transfer_counts', 'transfer_counts_age', ['seen_ms']);
}

/** The feed of lifecycle events, and how far each sandbox's are in it. */
async function createEvents(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  await numberedTable(db, dialect, 'events', 'seq')
    .addColumn('xid', 'bigint', (column) => column.notNull().defaultTo(position(dialect)))
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

/** Starts a table whose rows are numbered as they are added. Numbers are never reused. */
function numberedTable(db: Kysely<Tables>, dialect: Dialect, table: string, number: string) {
  const type: ColumnDataType = dialect === 'postgres' ? 'bigserial' : 'integer';
  return db.schema
    .createTable(table)
    .addColumn(number, type, (column) =>
      dialect === 'postgres' ? column.primaryKey() : column.primaryKey().autoIncrement(),
    );
}

/** Creates an index; with `condition`, SQL text, a partial one. */
async function createIndex(
  db: Kysely<Tables>,
  table: string,
  name: string,
  columns: string[],
  condition?: string,
): Promise<void> {
  const index = db.schema.createIndex(name).on(table).columns(columns);
  await (condition ? index.where(sql.raw<boolean>(condition)) : index).execute();
}
