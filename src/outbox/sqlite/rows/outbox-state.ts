import type { Clock } from '../../../base/clock.ts';
import type { Identity } from '../../../webhook/signed-event.ts';
import { recordKey } from './record-mac.ts';
import type { OutboxRow, OwnState } from './rows.ts';
import { storeNow } from './store-clock.ts';

/** The bounds of an outbox. Source: contract section 3, Window and Bounds. */
export interface OutboxLimits {
  max_bytes: number;
  max_records: number;
  window_ms: number;
}

/** Which records the outbox is for, and how they are signed. An empty secret signs nothing. */
export interface Ownership extends Identity {
  secret: string;
  /** 64 lower-case hex digits that authenticate the records; absent or null where they are not. */
  record_key?: string | null;
}

/** What all parts of the store share: the outbox's own row as this transaction leaves it, its owner and its clock. */
export class OutboxState {
  readonly limits: OutboxLimits;
  readonly clock: Clock;
  /** Store time minus monotonic time, in ms: continues the store's clock across restarts. */
  readonly offset_ms: number;
  /** The numbers of the outbox; written to disk with each commit. */
  row: OutboxRow;
  #committed: OutboxRow;
  #owner: Ownership | null = null;
  #record_key: Buffer | null = null;

  /**
   * `row`: as read. `before`: of the store that this one replaces; numbers and the clock continue from there.
   * `offset_ms`: continues the clock alone, because the rows are the same.
   */
  constructor(row: OutboxRow, clock: Clock, limits: OutboxLimits, before?: OutboxState, offset_ms?: number) {
    this.row = row;
    this.#committed = { ...row };
    this.clock = clock;
    this.limits = limits;
    this.offset_ms = before?.offset_ms ?? offset_ms ?? Math.round(storeNow(row, clock) - clock.monotonicMs());
    if (!before) return;
    const { number, sandbox_id, next_sequence, first_id, next_id, is_ready } = before.row;
    this.#owner = before.#owner;
    this.#record_key = before.#record_key;
    Object.assign(this.row, { number, sandbox_id, next_sequence, first_id, next_id, is_ready });
  }

  /** The sandbox that the outbox is for; null before it was adopted. */
  get owner(): Ownership | null {
    return this.#owner;
  }

  set owner(owner: Ownership) {
    this.#owner = owner;
    this.#record_key = recordKey(owner.record_key ?? '');
  }

  /** What authenticates the owner's records, or null. */
  get record_key(): Buffer | null {
    return this.#record_key;
  }

  /** The store's clock, in ms. */
  now(): number {
    return Math.round(this.clock.monotonicMs()) + this.offset_ms;
  }

  /** Counts a record of this sandbox that is new in a state, or with `by` -1 no longer in it. */
  count(state: OwnState, size_bytes: number, by: 1 | -1 = 1): void {
    this.row[state] += by;
    this.row[state === 'delivered' ? 'delivered_bytes' : 'bytes'] += by * size_bytes;
    if (state === 'pending') this.row.pending_bytes += by * size_bytes;
  }

  /** Counts a record of this sandbox in another state. */
  move(from: OwnState, to: OwnState, size_bytes: number): void {
    this.count(from, size_bytes, -1);
    this.count(to, size_bytes);
  }

  /** Notes that the row is as on disk. */
  committed(): void {
    this.#committed = { ...this.row };
  }

  /** Takes back every change since `committed`. */
  rolledBack(): void {
    this.row = this.#committed;
  }
}
