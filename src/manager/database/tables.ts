import type { Generated } from 'kysely';
import type { EventType } from '../../contract/events.ts';
import type {
  AttemptError,
  DeliveryState,
  ManagedStatus,
  Persistence,
  WebhookRetry,
} from '../../contract/words.ts';

/** Which of the two databases is used; stores ask only where the SQL must differ. */
export type Dialect = 'sqlite' | 'postgres';

/**
 * The tables of the manager's database, the same on SQLite and PostgreSQL. Ids are texts, times are wall time in ms
 * since the epoch, booleans are 0 or 1, structured values are JSON text.
 */
export interface Tables {
  tokens: TokenTable;
  teams: TeamTable;
  sandboxes: SandboxTable;
  sandbox_metadata: SandboxMetadataTable;
  idempotency_keys: IdempotencyKeyTable;
  outbox: OutboxTable;
  outbox_attempts: OutboxAttemptTable;
  outbox_endpoints: OutboxEndpointTable;
  outbox_replicas: OutboxReplicaTable;
  quota_policies: QuotaPolicyTable;
  settings: SettingTable;
  leases: LeaseTable;
  usage_windows: UsageWindowTable;
  network_positions: NetworkPositionTable;
  transfer_counts: TransferCountTable;
  events: EventTable;
  event_positions: EventPositionTable;
}

/** A bearer token; only its SHA-256 is stored. */
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

/** One row per team, locked while something is admitted for it. */
export interface TeamTable {
  team_id: string;
}

/**
 * The operation in progress on a sandbox, or null. Its owner finishes or undoes it before `operation_until_ms`; after
 * that any replica does.
 */
export type Operation =
  | 'claiming'
  | 'pausing'
  | 'resuming'
  | 'changing'
  /** It is the source of a copy that is being made. */
  | 'forking'
  /** It is the copy that is being made. */
  | 'copying'
  | 'cleaning'
  /** The same, once what ran has ended here, or somebody has given it up: nothing need be here any more. */
  | 'removing';

/** A sandbox, kept for a while after its deletion. */
export interface SandboxTable {
  sandbox_id: string;
  team_id: string;
  template_id: string;
  status: ManagedStatus;
  operation: Operation | null;
  operation_owner: string | null;
  operation_until_ms: number | null;
  /**
   * Raised by every operation that begins, and by every replica that takes one over; kept after its end. It begins as a
   * time, so that it is higher than what sandboxes remember also in a database that was restored.
   */
  operation_fence: number;
  auto_resume: number;
  pod_name: string | null;
  /** Null for a sandbox without a root of its own, and for one that has not begun. */
  persistence: Persistence | null;
  runtime_generation: number;
  memory_mib: number;
  cpu_millis: number;
  /** The memory that it holds while it is paused; null: all of it. */
  held_mib: number | null;
  /** As given or defaulted: `{"memory":"512Mi","cpu":0.1,"disk":"10Gi"}`. */
  resources: string;
  /** Labels, a JSON object of texts; null: none. */
  metadata: string | null;
  /** The bound on its disk; null: the default. */
  disk_mib: number | null;
  /** Its own bandwidth as JSON; null: unlimited. */
  bandwidth: string | null;
  /** JSON, `{"mode":"allow-all"}`; null, or without a mode: `allow-all`. */
  network: string | null;
  webhook_url: string | null;
  /** Null without a secret; empty once a sandbox that had one is deleted. */
  webhook_secret_sealed: string | null;
  watch_dir: string | null;
  /** A JSON list of globs; null without any. */
  watch_ignore: string | null;
  /** A JSON list of the kinds that the webhook is sent; null: all of them. */
  webhook_events: string | null;
  /** Which refused attempts are made again; null: `transient`. */
  webhook_retry: WebhookRetry | null;
  /** A sealed JSON object of names and values; null once the sandbox is deleted. */
  env_sealed: string | null;
  /** The names alone, a sealed JSON list in order, for records and lists. */
  env_names_sealed: string | null;
  /** Seconds; 0 is off. */
  ttl_s: number;
  hard_ttl_s: number;
  idle_ttl_s: number;
  expires_at_ms: number | null;
  hard_expires_at_ms: number | null;
  /** When it is paused unless it is used before; of a sandbox that runs and has an idle time. */
  idle_expires_at_ms: number | null;
  claimed_at_ms: number | null;
  created_at_ms: number;
  updated_at_ms: number;
  /** Set when its cleanup is complete. */
  deleted_at_ms: number | null;
  /** The node on which it runs. */
  node: string;
}

/** The pairs of `sandboxes.metadata`, by which lists find a sandbox until it is deleted. */
export interface SandboxMetadataTable {
  sandbox_id: string;
  team_id: string;
  key: string;
  text: string;
}

/** The response to a claim with an `Idempotency-Key`; `answer` is null while the claim is in progress. */
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

/** A webhook record: a signed request and its schedule. */
export interface OutboxTable {
  id: Generated<number>;
  event_id: string;
  sandbox_id: string;
  team_id: string;
  event_type: EventType;
  /** Null for `sandbox.deleted`. */
  sequence: number | null;
  /** `endpointOf(url)`: health, order and concurrency are tracked by it. */
  endpoint: string;
  url: string;
  /** JSON object: the headers that are the same on every attempt. */
  headers: string;
  /** JSON list of `[timestamp_s, signature]` for Standard Webhooks, or null. */
  signatures: string | null;
  /** The sealed `whsec_` secret of a record that was handed over, or null. */
  secret_sealed: string | null;
  body: string;
  /** Which refused attempts are made again. */
  retry: WebhookRetry;
  state: DeliveryState;
  /** When its next attempt is due: 0 before its first, null once it is final. */
  due_ms: number | null;
  probe_ms: number;
  deadline_ms: number;
  attempts: number;
  /** Failed attempts in the current window. */
  failures: number;
  created_at_ms: number;
  finished_at_ms: number | null;
}

/** Which replica delivers to an endpoint: one at a time, so that health, order and concurrency hold across replicas. */
export interface OutboxEndpointTable {
  endpoint: string;
  owner: string | null;
  /** Increases with every owner; an outcome under an old fence is refused. */
  fence: number;
}

/** The leases of replicas that own endpoints. Any replica may remove an expired lease, which frees its endpoints. */
export interface OutboxReplicaTable {
  owner: string;
  /** On the database's own clock. */
  lease_until_ms: number;
}

/** One delivery attempt of a record. `status` is that of the response, null if there was none. */
export interface OutboxAttemptTable {
  record_id: number;
  attempt: number;
  started_at_ms: number;
  duration_ms: number;
  status: number | null;
  error: AttemptError | null;
  next_attempt_at_ms: number | null;
  response_body: string | null;
  /** Why it failed; null for a success. */
  error_detail: string | null;
}

/** A quota policy of a team, or of the region for teams without their own. */
export interface QuotaPolicyTable {
  scope: 'region' | 'team';
  /** Empty for a policy of the region. */
  team_id: string;
  dimension: string;
  limit_value: number;
  interval_ms: number | null;
  burst_value: number | null;
  /** Where it comes from: `config`, `legacy`, `operator`. */
  source: string;
}

/** A named value that belongs to the database as a whole. */
export interface SettingTable {
  key: string;
  value: string;
}

/** The memory that a sandbox leases now, and the time up to which it is part of closed windows. */
export interface LeaseTable {
  sandbox_id: string;
  team_id: string;
  memory_mib: number;
  cpu_millis: number;
  started_ms: number;
  counted_until_ms: number;
  /** Null: the last look at all sandboxes has seen it run. Otherwise the last time at which it was known to. */
  last_seen_ms: number | null;
}

/** What was last seen of a sandbox's traffic, and how much of it is part of closed windows; kept as long as the sandbox's row. */
export interface NetworkPositionTable {
  sandbox_id: string;
  team_id: string;
  /** JSON: the `network_usage` last seen, and when. */
  usage: string;
  seen_ms: number;
  egress_counted: number;
  ingress_counted: number;
  /** Null while metering is off: what has passed by its start is in no window. */
  counted_until_ms: number | null;
}

/** Bytes of a sandbox that one replica has carried and that are in no closed window yet. */
export interface TransferCountTable {
  /** Of the window that it becomes. */
  window_id: string;
  sandbox_id: string;
  team_id: string;
  bytes: number;
  started_ms: number;
  /** When its bytes were last seen to grow. */
  seen_ms: number;
}

/** Closed usage windows; rows are added and never changed. */
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

/** An event of the feed; rows are added and never changed. */
export interface EventTable {
  seq: Generated<number>;
  /** As in `usage_windows`. */
  xid: Generated<number>;
  event_id: string;
  team_id: string;
  sandbox_id: string;
  event_type: string;
  /** Null for `sandbox.deleted`. */
  sequence: number | null;
  body: string;
  recorded_at_ms: number;
}

/** How far the events of a sandbox's daemon are in the feed; kept as long as the sandbox's row. */
export interface EventPositionTable {
  sandbox_id: string;
  /** Of the last event taken; 0 before the first. */
  sequence: number;
  /** When the daemon is to be asked, because an event of it may not have been taken; null where none is expected. */
  due_ms: number | null;
}
