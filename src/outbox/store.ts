import type { DeliveryDetail, DeliveryPage, OutboxCounts } from '../contract/deliveries.ts';
import type { EventType } from '../contract/events.ts';
import type { AttemptError, DeliveryState, FinalState, UndeliveredState } from '../contract/words.ts';
import type { Decision } from '../webhook/retry.ts';

/** An event on its way into the outbox. `payload` is JSON text and is kept as it is. */
export interface EventDraft {
  event_type: EventType;
  happened_at_ms: number;
  payload: string;
  idempotency_key?: string | undefined;
  /** It is recorded, and nobody is to receive it: the record has no delivery. */
  unsent?: true | undefined;
  /** Stored with the record and sent with every attempt; checked. */
  traceparent?: string | undefined;
}

/** Rows of the watched tree, opaque to the store, that change together with the events they caused. */
export interface TreeChange {
  put: { id: number; entry: string }[];
  drop: number[];
}

/**
 * One or more drafts that are committed together or not at all. An append with a `tree` is answered only when its
 * outcome is known, however long the disk takes: the watch must not report its changes twice.
 */
export interface Append {
  drafts: EventDraft[];
  tree?: TreeChange;
  /** An idempotency key: `unneeded` unless a record with it is kept. */
  requires?: string | undefined;
}

/**
 * The result of an append.
 * - `committed`: on stable storage; one entry per draft
 * - `repeated`: the idempotency key was used before with the same payload; nothing was queued
 * - `conflict`: the idempotency key was used before with another payload
 * - `full`: a bound of the outbox is reached; `unavailable`: the commit did not reach the disk
 * - `unneeded`: a `sandbox.ready` of a sandbox that is already up, or the event that it `requires` is not kept
 */
export type AppendResult =
  | { outcome: 'committed' | 'repeated'; records: { event_id: string; sequence: number }[] }
  | { outcome: 'conflict' | 'full' | 'unavailable' | 'unneeded' };

/** A record to be attempted, as it is scheduled. Times are in ms of the store's clock (`DeliveryStore.now`). */
export interface DueRecord {
  readonly id: number;
  readonly event_id: string;
  readonly event_type: string;
  /** Memory that its body takes while the record waits; 0 in an engine that reads bodies when it loads records. */
  readonly body_bytes: number;
  readonly attempts: number;
  /** Failed attempts of the current window. */
  readonly failures: number;
  readonly deadline_ms: number;
  /** When it may be the endpoint's probe; 0 where it was never tried. */
  readonly probe_ms: number;
  /** Wall time of its commit, in ms. */
  readonly created_at_ms: number;
}

/** A record with the request that is sent, apart from the headers of the attempt. */
export interface LoadedRecord extends DueRecord {
  readonly headers: Readonly<Record<string, string>>;
  /** UTF-8. */
  readonly body: string | Buffer;
}

/** One attempt that has ended, and the decision about its record. `started_at_ms` is wall time. */
export interface AttemptOutcome {
  id: number;
  attempt: number;
  started_at_ms: number;
  duration_ms: number;
  status: number | null;
  error: AttemptError | null;
  error_detail: string | null;
  response_body: string | null;
  decision: Decision;
}

/** Receives records that were just committed. */
export interface RecordsListener {
  /** Whether it takes records now: asked by an engine that has them at hand when it commits. */
  hasRoom(): boolean;
  /** Records were added; null where they must be read with `untried`. */
  onAdded(records: DueRecord[] | null): void;
}

/**
 * The store as the dispatcher uses it. Verbs that read due records reject while the store is unavailable. The promises of
 * every engine are tested in `test/support/outbox/conformance.ts`, which runs on each.
 */
export interface DeliveryStore<Loaded extends LoadedRecord = LoadedRecord> {
  /** The store's clock in ms: monotonic, and continued across restarts. */
  now(): number;
  /** Records that were never tried, in the order of their ids, after `after_id`; `more` where others follow. */
  untried(after_id: number, limit: number): Promise<{ records: DueRecord[]; more: boolean }>;
  /** Records whose retry is due, earliest first; `next_due_ms`: when the first of the others is due, or null. */
  due(limit: number): Promise<{ records: DueRecord[]; next_due_ms: number | null }>;
  /** Records that were tried before and whose window is over; `next_deadline_ms`: of the first of the others, or null. */
  overdue(limit: number): Promise<{ records: DueRecord[]; next_deadline_ms: number | null }>;
  /** The record that may be the probe first, among those that were tried before and are not in `in_flight`. */
  probeCandidate(in_flight: number[]): Promise<DueRecord | null>;
  /**
   * A due record of this store with its request, unchanged until it is final; at once where it is in memory. Never
   * rejects: waits while the store is unavailable. Null once the record is no longer this store's to send; the owner of
   * the store then stops the dispatcher.
   */
  load(record: DueRecord): Loaded | Promise<Loaded | null>;
  /**
   * Records an attempt and its decision; resolves once both are on stable storage. Changes nothing where the attempt was
   * recorded before, or its record is no longer pending.
   */
  record(outcome: AttemptOutcome): Promise<void>;
  /** The dispatcher holds a record no more, and takes it from a read again. For an engine that notes what it gave out. */
  release?(id: number): void;
  /** Sets the listener, which is called after every commit that added records. */
  onRecordsAdded(listener: RecordsListener): void;
}

/** Which deliveries a list shows, newest first. */
export interface DeliveryFilter {
  state?: DeliveryState | undefined;
  event_type?: string | undefined;
  limit: number;
  /** Only records that were committed before this one. */
  before_id?: number | undefined;
}

/** The store as the API shows it. Verbs reject with `outbox_unavailable` while the store is unavailable. */
export interface InspectionStore {
  /** Records by state, and bytes, as of the last commit. */
  counts(): OutboxCounts;
  /** One page of deliveries. */
  list(filter: DeliveryFilter): Promise<DeliveryPage>;
  /** One delivery with its body and attempts, or null. */
  find(event_id: string): Promise<DeliveryDetail | null>;
  /** Makes a record pending again with a new window; false where there is no such record. */
  replay(event_id: string): Promise<boolean>;
  /** Replays every record in a state; resolves to their number. */
  replayAll(state: FinalState): Promise<number>;
  /** Removes a record that is not sent any more; see `Discarded`. */
  discard(event_id: string): Promise<Discarded>;
  /** Removes every record in a state; resolves to their number. */
  discardAll(state: UndeliveredState): Promise<number>;
  /** Up to `limit` committed records after a sequence, oldest first. */
  after(sequence: number, limit: number): Promise<StreamRecord[]>;
}

/** What became of a request to discard a record: it stays where it is pending, or another sandbox's (`foreign`). */
export type Discarded = 'discarded' | 'absent' | 'pending' | 'foreign';

/** A record as a stream of events shows it. */
export interface StreamRecord {
  sequence: number;
  event_type: string;
  body: string;
}

/** What was found when the store was opened for a sandbox. */
export interface Adoption {
  /** The sandbox was up when the store was last written: `sandbox.ready` must not be sent again. */
  was_ready: boolean;
  /** Acknowledged records that are missing after damage, in whatever state they were. */
  missing_records: number;
  /** How many of them were not delivered, at most. */
  lost_records: number;
  /** Path of the copy of a damaged outbox, as it was found, or null. */
  set_aside: string | null;
  /** Records of other sandboxes, and how many of them were not delivered. */
  foreign_records: number;
  foreign_pending: number;
}
