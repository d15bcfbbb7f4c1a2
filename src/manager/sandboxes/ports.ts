import type { UndeliveredRecord } from '../../runtime/runtime.ts';
import type { Transaction } from '../database/database.ts';

/** What a sandbox leases from its start until it is paused or ends. */
export interface Lease {
  sandbox_id: string;
  team_id: string;
  memory_mib: number;
  cpu_millis: number;
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
  /** Whether a copy may be made, which is paused: it holds disk alone. */
  admitCopy(tx: Transaction, lease: Lease): Promise<void>;
}

/** Metering of leases, inside the transaction that begins, changes or ends one. Times are wall time in ms. */
export interface Metering {
  began(tx: Transaction, lease: Lease, at_ms: number): Promise<void>;
  changed(tx: Transaction, lease: Lease, at_ms: number): Promise<void>;
  /** Where there is no lease nothing happens. `last_seen` where it is not known when the sandbox stopped running. */
  ended(tx: Transaction, sandbox_id: string, at_ms: number | 'last_seen'): Promise<void>;
}

/** A sandbox whose events are delivered by the manager. */
export interface WebhookTarget {
  sandbox_id: string;
  team_id: string;
  webhook_url: string;
  /** Empty: nothing is signed. */
  webhook_secret: string;
}

/** A deletion that is being committed. Source: contract section 2, `sandbox.deleted`. */
export interface DeletionNotice extends WebhookTarget {
  reason: 'api' | 'ttl_expired' | 'runtime_lost';
  /** The token's id; null where no caller asked for it. */
  actor: string | null;
  happened_at_ms: number;
}

/** A record that was taken over: its id in the manager's outbox, and what became of its attempts so far. */
export interface TakenOver {
  record_id: number;
  attempt_log: UndeliveredRecord['attempt_log'];
}

/** The manager's outbox as deletions use it. */
export interface DeletionOutbox {
  /** Throws `outbox_full` where too much of a team is undelivered for one more sandbox whose events are delivered. */
  checkCapacity(tx: Transaction, team_id: string): Promise<void>;
  /** Writes the exact signed `sandbox.deleted`, in the transaction that commits the deletion. */
  sandboxDeleted(tx: Transaction, notice: DeletionNotice): Promise<void>;
  /** Takes over what a sandbox's own daemon had not delivered; what is there already is left as it is. */
  handOver(tx: Transaction, sender: WebhookTarget, records: UndeliveredRecord[]): Promise<TakenOver[]>;
  /** Keeps the attempts of records that were taken over. */
  handOverAttempts(tx: Transaction, taken: TakenOver[]): Promise<void>;
  /** Records were committed: their delivery may begin. */
  wake(): void;
}
