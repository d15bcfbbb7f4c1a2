import type { Generated } from 'kysely';
import type { AttemptError, DeliveryState } from '../../contract/deliveries.ts';
import type { EventType } from '../../contract/events.ts';
import type { ManagedStatus } from '../../contract/sandboxes.ts';

/** Which of the two databases it is: a store asks only where they have no words in common. */
export type Dialect = 'sqlite' | 'postgres';

/**
 * The rows of the manager's database, the same on SQLite and PostgreSQL. Ids are texts, times are wall time in ms
 * since the epoch, switches are 0 or 1, what has a shape of its own is JSON text.
 */
export interface Tables {
  tokens: TokenTable;
  teams: TeamTable;
  sandboxes: SandboxTable;
  idempotency_keys: IdempotencyKeyTable;
  outbox: OutboxTable;
  outbox_attempts: OutboxAttemptTable;
  outbox_endpoints: OutboxEndpointTable;
  outbox_replicas: OutboxReplicaTable;
  quota_policies: QuotaPolicyTable;
  settings: SettingTable;
  leases: LeaseTable;
  usage_windows: UsageWindowTable;
}

/** A bearer token: only its SHA-256 is kept. */
export interface TokenTable {
  token_id: string;
  team_id: string;
  /** JSON list. */
  scopes: string;
  is_internal: number;
  /** Lower-case hex. */
  token_hash: string;
  created_at_ms: number;
  revoked_at_ms: number | null;
}

/** One row a team, locked while something is admitted for it. */
export interface TeamTable {
  team_id: string;
}

/**
 * What is under way with a sandbox; null where nothing is. Its owner finishes or undoes it until `operation_until_ms`,
 * then any replica does.
 */
export type Operation =
  | 'claiming'
  | 'pausing'
  | 'resuming'
  | 'changing'
  /** A copy of it is being made. */
  | 'forking'
  /** It is being made as a copy. */
  | 'copying'
  | 'cleaning';

export interface SandboxTable {
  sandbox_id: string;
  team_id: string;
  template_id: string;
  status: ManagedStatus;
  operation: Operation | null;
  operation_owner: string | null;
  operation_until_ms: number | null;
  auto_resume: number;
  pod_name: string | null;
  runtime_generation: number;
  memory_mib: number;
  cpu_millis: number;
  /** As given or defaulted: `{"memory":"512Mi","cpu":0.1}`. */
  resources: string;
  /** As given, or null. */
  network: string | null;
  webhook_url: string | null;
  /** Empty where there was one and the sandbox is gone. */
  webhook_secret_sealed: string | null;
  watch_dir: string | null;
  /** A JSON object of names and values; null once the sandbox is gone. */
  env_sealed: string | null;
  /** Seconds; 0 is off. */
  ttl_s: number;
  hard_ttl_s: number;
  expires_at_ms: number | null;
  hard_expires_at_ms: number | null;
  claimed_at_ms: number | null;
  created_at_ms: number;
  updated_at_ms: number;
  /** Set when its cleanup is complete. */
  deleted_at_ms: number | null;
  /** Where it runs. */
  node: string;
}

/** What a claim with an `Idempotency-Key` was answered; `answer` is null while it is under way. */
export interface IdempotencyKeyTable {
  team_id: string;
  key: string;
  /** SHA-256 of the request's body bytes. */
  body_hash: string;
  sandbox_id: string;
  status_code: number | null;
  answer: string | null;
  created_at_ms: number;
}

export interface OutboxTable {
  id: Generated<number>;
  event_id: string;
  sandbox_id: string;
  team_id: string;
  event_type: EventType;
  /** Null for `sandbox.deleted`. */
  sequence: number | null;
  /** `endpointOf(url)`: what health and concurrency count for. */
  endpoint: string;
  url: string;
  /** JSON object: what is the same on every attempt. */
  headers: string;
  /** JSON list of `[timestamp_s, signature]` for Standard Webhooks, or null. */
  signatures: string | null;
  /** The `whsec_` secret of a record that was handed over, or null. */
  secret_sealed: string | null;
  body: string;
  state: DeliveryState;
  /** When its next attempt is due: 0 before its first, null once it is final. */
  due_ms: number | null;
  probe_ms: number;
  deadline_ms: number;
  attempts: number;
  /** Failed attempts of the present window. */
  failures: number;
  created_at_ms: number;
  finished_at_ms: number | null;
}

/** Which replica delivers to an endpoint: one at a time, so that health, order and concurrency count for all of them. */
export interface OutboxEndpointTable {
  endpoint: string;
  owner: string | null;
  /** Goes up with every owner; an outcome under an old one is refused. */
  fence: number;
}

/** The leases of those that own endpoints. One that is over may be removed by anybody, and its endpoints are free. */
export interface OutboxReplicaTable {
  owner: string;
  /** On the database's own clock. */
  lease_until_ms: number;
}

export interface OutboxAttemptTable {
  record_id: number;
  attempt: number;
  started_at_ms: number;
  duration_ms: number;
  status: number | null;
  error: AttemptError | null;
  next_attempt_at_ms: number | null;
  response_body: string | null;
}

export interface QuotaPolicyTable {
  scope: 'region' | 'team';
  /** Empty for the region's. */
  team_id: string;
  dimension: string;
  limit_value: number;
  interval_ms: number | null;
  burst_value: number | null;
  /** Who set it: `config`, `legacy`, `operator`. */
  source: string;
}

export interface SettingTable {
  key: string;
  value: string;
}

/** The memory that a sandbox leases now, and up to when it is in closed windows. */
export interface LeaseTable {
  sandbox_id: string;
  team_id: string;
  memory_mib: number;
  started_ms: number;
  counted_until_ms: number;
  /** The last time at which it was known to run. */
  heartbeat_ms: number;
}

/** Closed windows: rows are added and never changed. */
export interface UsageWindowTable {
  seq: Generated<number>;
  /** PostgreSQL: the transaction that wrote it; SQLite: 0. */
  xid: Generated<number>;
  window_id: string;
  team_id: string;
  region_id: string;
  cluster_id: string;
  window_type: string;
  subject_type: string;
  subject_id: string;
  sandbox_id: string;
  window_start_ms: number;
  window_end_ms: number;
  value: number;
  unit: string;
  recorded_at_ms: number;
}
