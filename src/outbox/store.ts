import type {
  AttemptError,
  DeliveryDetail,
  DeliveryPage,
  DeliveryState,
  OutboxCounts,
} from '../contract/deliveries.ts';
import type { EventType } from '../contract/events.ts';
import type { Decision } from '../webhook/retry.ts';

/** An event on its way into the outbox. `payload` is JSON text and is kept as it is. */
export interface EventDraft {
  event_type: EventType;
  happened_at_ms: number;
  payload: string;
  idempotency_key?: string | undefined;
}

/** Rows of the watched tree, opaque to the store, that change together with the events they caused. */
export interface TreeChange {
  put: { id: number; entry: string }[];
  drop: number[];
}

/**
 * One or more drafts that are committed together or not at all. One with a `tree` is answered when it is known what
 * became of it, however long the disk takes: whoever keeps the tree must not tell its changes twice.
 */
export interface Append {
  drafts: EventDraft[];
  tree?: TreeChange;
  /** An idempotency key: `unneeded` unless a record with it is kept. */
  requires?: string | undefined;
}

/**
 * What became of an append.
 * - `committed`: on stable storage; one entry per draft
 * - `repeated`: the idempotency key was used before with the same payload; nothing was queued
 * - `conflict`: the idempotency key was used before with another payload
 * - `full`: the bound is reached; `unavailable`: the commit did not reach the disk
 * - `unneeded`: a `sandbox.ready` of a sandbox that is already known to be up, or what it `requires` is not kept
 */
export type AppendResult =
  | { outcome: 'committed' | 'repeated'; records: { event_id: string; sequence: number }[] }
  | { outcome: 'conflict' | 'full' | 'unavailable' | 'unneeded' };

/** A record to be attempted. Times are in ms of the store's clock (`DeliveryStore.now`). */
export interface DueRecord {
  id: number;
  event_id: string;
  event_type: string;
  headers: Record<string, string>;
  body: string;
  attempts: number;
  /** Failed attempts of the present window. */
  failures: number;
  deadline_ms: number;
  /** From when on it may be the endpoint's probe; 0 where it was never tried. */
  probe_ms: number;
  /** Wall time of its commit. */
  created_at_ms: number;
}

/** One attempt that has ended, and what it means for its record. */
export interface AttemptOutcome {
  id: number;
  attempt: number;
  started_at_ms: number;
  duration_ms: number;
  status: number | null;
  error: AttemptError | null;
  response_body: string | null;
  decision: Decision;
}

/** What is committed and waits for its first attempt; `records` is null where they are to be read by `untried`. */
export type CommittedListener = (records: DueRecord[] | null) => void;

/** The store as the dispatcher uses it. Verbs reject while the store is out of order. */
export interface DeliveryStore {
  /** The store's clock: monotonic, going on over restarts, in ms. */
  now(): number;
  /** Records that were never tried, in commit order, after `after_id`; `more` where others follow. */
  untried(after_id: number, limit: number): Promise<{ records: DueRecord[]; more: boolean }>;
  /** Records whose retry is due, due first; `next_due_ms` is the first one's that is not yet. */
  due(limit: number): Promise<{ records: DueRecord[]; next_due_ms: number | null }>;
  /** Records that were tried before and whose window is over. */
  overdue(limit: number): Promise<{ records: DueRecord[]; next_deadline_ms: number | null }>;
  /** The record that may be the probe first, among those that were tried before and are not in `held`. */
  probeCandidate(held: number[]): Promise<DueRecord | null>;
  /** Keeps an attempt and what it means; resolves once it is on stable storage. */
  record(outcome: AttemptOutcome): Promise<void>;
  /** Calls back after every commit that added records. `wanted()` tells whether to hand them over. */
  onCommitted(wanted: () => boolean, listener: CommittedListener): void;
}

/** What a list of deliveries is narrowed to. */
export interface DeliveryFilter {
  state?: DeliveryState | undefined;
  event_type?: string | undefined;
  limit: number;
  /** Only records that were committed before this one. */
  before_id?: number | undefined;
}

/** The store as people see it. */
export interface InspectionStore {
  counts(): OutboxCounts;
  list(filter: DeliveryFilter): Promise<DeliveryPage>;
  find(event_id: string): Promise<DeliveryDetail | null>;
  /** Makes a record pending again with a new window; false where there is none. */
  replay(event_id: string): Promise<boolean>;
  /** The same for every record in a state; tells how many. */
  replayAll(state: 'failed' | 'expired' | 'delivered'): Promise<number>;
  /** Committed records after a sequence, oldest first: what a stream of events shows. */
  after(sequence: number, limit: number): Promise<StreamRecord[]>;
}

export interface StreamRecord {
  sequence: number;
  event_type: string;
  body: string;
}

/** What was found when the store was opened for a sandbox. */
export interface Adoption {
  /** The sandbox was up when the store was last written: no second `sandbox.ready` is owed. */
  was_ready: boolean;
  /** Acknowledged records that are missing after damage, whatever became of them. */
  missing_records: number;
  /** Those among them that were not delivered, at most. */
  lost_records: number;
  /** Where a copy of a damaged outbox is, as it was found, or null. */
  set_aside: string | null;
  /** Records of other sandboxes, and those among them that were not delivered. */
  foreign_records: number;
  foreign_pending: number;
}
