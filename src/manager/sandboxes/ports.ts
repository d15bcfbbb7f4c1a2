import type { NetworkUsage } from '../../contract/sandboxes.ts';
import type { WebhookRetry } from '../../contract/words.ts';
import type { LifecycleEvent, UndeliveredRecord } from '../../runtime/runtime.ts';
import type { Transaction } from '../database/database.ts';

/** The resources that a sandbox leases: memory (MiB) and thousandths of a core while it is active, disk (MiB) until it is gone. */
export interface Lease {
  sandbox_id: string;
  team_id: string;
  memory_mib: number;
  cpu_millis: number;
  /** Null: the default. */
  disk_mib: number | null;
}

/**
 * Whether another sandbox may be active. Called inside the transaction of a claim or a resume, before the sandbox
 * counts: its row is written, or set to `starting`, right after. A sandbox is active while its status is `starting` or
 * `running`. Until the transaction ends nothing else is admitted for the team.
 */
export interface Admission {
  /** Throws `quota_exceeded` or `capacity_exhausted`. */
  admit(tx: Transaction, lease: Lease): Promise<void>;
  /** The same for a running sandbox whose memory changes; `lease` holds the memory it would have. */
  admitChange(tx: Transaction, lease: Lease): Promise<void>;
  /** Whether a paused sandbox may take this: disk, and as memory what it holds. */
  admitCopy(tx: Transaction, lease: Lease): Promise<void>;
}

/** Is told of recorded sandboxes of which nothing is in sight here, neither files nor Pod: they may run elsewhere. */
export interface Sight {
  /** Those that a watch over all sandboxes has not seen; it replaces what the last one said. */
  watched(sandbox_ids: ReadonlySet<string>): void;
  /** Those that are recorded as running or paused, as read just now. */
  recorded(sandbox_ids: ReadonlySet<string>): void;
  /** One that is deleted, whose events nobody can hand over. */
  deleting(sandbox_id: string): void;
  /** One that is deleted is seen again, or is given up. */
  seen(sandbox_id: string): void;
}

/** Metering of leases, inside the transaction that begins, changes or ends one. Times are wall time in ms. */
export interface LeaseMetering {
  /** Opens a lease. */
  began(tx: Transaction, lease: Lease, at_ms: number): Promise<void>;
  /** Closes the lease and opens one with the new resources. */
  changed(tx: Transaction, lease: Lease, at_ms: number): Promise<void>;
  /** Closes the lease, if there is one. `last_seen`: the time at which the sandbox stopped is unknown. */
  ended(tx: Transaction, sandbox_id: string, at_ms: number | 'last_seen'): Promise<void>;
  /** All leased sandboxes but these were seen to run, not before `at_ms`. */
  watched(at_ms: number, unseen: ReadonlySet<string>): Promise<void>;
}

/** Metering of the bytes that networks of sandboxes pass. Times are wall time in ms. */
export interface TrafficMetering {
  /** In the transaction in which a sandbox is made or resumed: counting begins, or goes on. */
  began(tx: Transaction, sandbox: { sandbox_id: string; team_id: string }, at_ms: number): Promise<void>;
  /**
   * Closes the windows of a sandbox that is paused or cut off. `usage` was read since; null: it cannot be read here, and
   * the one last seen counts. Idempotent.
   */
  closed(tx: Transaction, sandbox_id: string, usage: NetworkUsage | null, at_ms: number): Promise<void>;
  /** The usage now, for a record; null if nothing is counted. */
  usage(sandbox_id: string): Promise<NetworkUsage | null>;
  /** The usages last seen, for lists, of the sandboxes that are counted. */
  lastSeen(sandbox_ids: string[]): Promise<Map<string, NetworkUsage>>;
}

/** A sandbox with its webhook, for events that the manager delivers. */
export interface WebhookTarget {
  sandbox_id: string;
  team_id: string;
  webhook_url: string;
  /** Empty: nothing is signed. */
  webhook_secret: string;
  /** Which refused attempts are made again; of `sandbox.deleted` it is always those of `transient`. */
  retry: WebhookRetry;
}

/** What the outbox sends of sandboxes counts among the bytes of their team that the manager carries, which may have a rate. */
export interface OutboxCharge {
  /** Whether teams have a rate. */
  readonly has_rate: boolean;
  /** Teams whose events are not to be sent now. */
  held(): string[];
  /** Calls back whenever a team is held no more. */
  onFree(call: () => void): void;
  /** Bytes of a sandbox's webhooks that were sent. */
  sent(sandbox: FeedSandbox, bytes: number): void;
}

/** A deletion that is being committed. Source: contract section 2, `sandbox.deleted`. */
export interface DeletionNotice extends WebhookTarget {
  reason: 'api' | 'ttl_expired' | 'runtime_lost';
  /** The token's id; null if no caller requested the deletion. */
  actor: string | null;
  happened_at_ms: number;
}

/** What the feed has read of a sandbox's daemon, to be stored in the transaction that it was read for. */
export interface LifecycleReading {
  events: LifecycleEvent[];
  /** Where more is to be read, and may be at once: later. */
  is_complete: boolean;
}

/**
 * The team's feed of lifecycle events. What a sandbox's daemon records at a transition is read right after it and stored
 * in the transaction that ends it; what is not, because the daemon or this manager did not answer, is read later.
 */
export interface LifecycleFeed {
  /** In the transaction that begins an operation at which the daemon records an event. */
  expect(tx: Transaction, sandbox_id: string): Promise<void>;
  /** Reads what the daemon has recorded since the last time. Never rejects, and waits a few seconds at most. */
  read(sandbox: FeedSandbox): Promise<LifecycleReading>;
  /** Stores it. */
  store(tx: Transaction, sandbox: FeedSandbox, reading: LifecycleReading): Promise<void>;
  /** The sequence up to which the events of a sandbox are stored. */
  position(sandbox_id: string): Promise<number>;
  /** Stores the `sandbox.deleted` of the transaction that commits a deletion. */
  deleted(tx: Transaction, sandbox: FeedSandbox, event: DeletedEvent): Promise<void>;
}

/** The sandbox that events belong to. */
export interface FeedSandbox {
  sandbox_id: string;
  team_id: string;
}

/** The `sandbox.deleted` of a deletion: its id and exact body. */
export interface DeletedEvent {
  event_id: string;
  body: string;
}

/** A record that was taken over: its id in the manager's outbox, and its attempts so far. */
export interface TakenOver {
  record_id: number;
  attempt_log: UndeliveredRecord['attempt_log'];
}

/** The manager's outbox as deletions use it. */
export interface DeletionOutbox {
  /** Throws `outbox_full` if a team has too many undelivered records for one more sandbox with a webhook. */
  checkCapacity(tx: Transaction, team_id: string): Promise<void>;
  /** Writes the exact signed `sandbox.deleted`, in the transaction that commits the deletion, and returns it. */
  sandboxDeleted(tx: Transaction, notice: DeletionNotice): Promise<DeletedEvent>;
  /** Takes over records that a sandbox's daemon had not delivered. Idempotent. */
  handOver(tx: Transaction, target: WebhookTarget, records: UndeliveredRecord[]): Promise<TakenOver[]>;
  /** Stores the attempts of records that were taken over. */
  handOverAttempts(tx: Transaction, taken: TakenOver[]): Promise<void>;
  /** Call after the commit of records: starts their delivery. */
  wake(): void;
}
