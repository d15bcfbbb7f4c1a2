import { RETRIES_WAITING_MAX, RETRIES_WAITING_MAX_BYTES } from '../contract/defaults.ts';
import type { DeliveryStore, DueRecord } from './store.ts';

/** Records in memory that wait for their first attempt: enough to keep every connection busy, whatever the backlog. */
const WINDOW_RECORDS = 1_024;
const WINDOW_BYTES = 4 * 1024 * 1024;
/** Records per read: while a larger read is unpacked, attempts that have ended would wait. */
const READ_RECORDS = 128;
/** Retries per read. */
const RETRY_RECORDS = RETRIES_WAITING_MAX;
const FOREVER = Number.POSITIVE_INFINITY;

/** Those that a window informs. */
export interface WindowEvents {
  /** Untried records were added or read. */
  onUntried: () => void;
  /** A record has left the window: its outcome is recorded, or its retry is the store's alone. */
  onReleased: (id: number) => void;
}

/** A retry that waits in memory. */
interface Kept {
  record: DueRecord;
  due_ms: number;
  is_due: boolean;
}

/**
 * The part of an endpoint's backlog that is in memory: a bounded window over the store's rows, which are the truth.
 *
 * A record's way through the window:
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | untried | `add`, `refill`, `readUntried` | `takeUntried` |
 * | in flight | `takeUntried`, `takeRetry`, `takeOverdue`, `takeProbe` | `keep` or `release`, once its outcome is on disk |
 * | waiting | `keep` | `noteDue`, or `releaseRetries` (back to the store) |
 * | retry | `noteDue`, `refill` | `takeRetry`, `takeOverdue`, or `releaseRetries` (back to the store) |
 *
 * All but the untried are held: they are not taken from the store again until they are released.
 */
export class DeliveryWindow {
  readonly #store: DeliveryStore;
  readonly #events: WindowEvents;
  /** Never tried, in commit order. `#last_read_id` is the last record that was put there. */
  #untried: DueRecord[] = [];
  #untried_bytes = 0;
  #last_read_id = 0;
  /** The store may hold untried records that are not in `#untried`. */
  #is_behind = true;
  #is_reading = false;
  #is_refilling = false;
  #refills_again = false;
  /** Due retries, in commit order. */
  #retries: DueRecord[] = [];
  #next_due_ms = 0;
  #next_deadline_ms = 0;
  readonly #held = new Set<number>();
  /** Retries that were not read but kept since their last attempt, until the next one: waiting, or due. */
  readonly #kept = new Map<number, Kept>();
  #kept_bytes = 0;

  constructor(store: DeliveryStore, events: WindowEvents) {
    this.#store = store;
    this.#events = events;
  }

  /** Untried records in memory. */
  get untried_count(): number {
    return this.#untried.length;
  }

  /** Due retries in memory. */
  get retry_count(): number {
    return this.#retries.length;
  }

  /** Whether the store may hold untried records that are not in memory. */
  get is_behind(): boolean {
    return this.#is_behind;
  }

  /** When the first retry is due, in ms of the store's clock; 0 where that is to be read again. */
  get next_due_ms(): number {
    return Math.min(this.#next_due_ms, ...[...this.#kept.values()].map(({ due_ms }) => due_ms));
  }

  /** Whether new records may be added directly after their commit. */
  hasRoom(): boolean {
    // A record that is committed while older ones are being read comes after them.
    if (this.#is_behind || this.#is_reading) return false;
    return this.#untried.length < WINDOW_RECORDS && this.#untried_bytes < WINDOW_BYTES;
  }

  /** Adds records that were just committed; null, or too many, means that they are to be read from the store. */
  add(records: DueRecord[] | null): void {
    if (records && this.hasRoom()) this.#addUntried(records);
    else this.#is_behind = true;
  }

  #addUntried(records: DueRecord[]): void {
    for (const record of records) {
      if (record.id <= this.#last_read_id) continue;
      this.#last_read_id = record.id;
      this.#untried.push(record);
      this.#untried_bytes += record.body_bytes;
    }
    this.#events.onUntried();
  }

  /** Takes the oldest untried record, or null. */
  takeUntried(): DueRecord | null {
    const record = this.#untried.shift() ?? null;
    if (!record) return null;
    this.#untried_bytes -= record.body_bytes;
    this.#held.add(record.id);
    return record;
  }

  /** Takes the oldest due retry, or null. */
  takeRetry(): DueRecord | null {
    const retry = this.#retries.shift() ?? null;
    if (retry) this.#forgetKept(retry.id);
    return retry;
  }

  /** Takes a record whose window is over, or null: its one last attempt is owed whatever the endpoint's health. */
  takeOverdue(): DueRecord | null {
    const now_ms = this.#store.now();
    const [retry] = this.#retries;
    if (retry && retry.deadline_ms <= now_ms) return this.takeRetry();
    const [untried] = this.#untried;
    return untried && untried.deadline_ms <= now_ms ? this.takeUntried() : null;
  }

  /** Takes a record that was tried before, if it may be the endpoint's probe now. */
  takeProbe(record: DueRecord | null): DueRecord | null {
    if (!record || record.probe_ms > this.#store.now() || this.#held.has(record.id)) return null;
    this.#held.add(record.id);
    return record;
  }

  /** The record in the store that may be the probe first, or null. Rejects while the store is out of order. */
  probeCandidate(): Promise<DueRecord | null> {
    return this.#store.probeCandidate([...this.#held]);
  }

  /** Lets a record be taken from the store again: its outcome is on disk. */
  release(id: number): void {
    this.#held.delete(id);
    this.#forgetKept(id);
    this.#events.onReleased(id);
  }

  /**
   * Keeps a record whose failed attempt is on disk until `due_ms` of the store's clock, when `noteDue` must be called. False
   * if there is no room for it: then it is to be released.
   */
  keep(record: DueRecord, due_ms: number): boolean {
    const bytes = this.#kept_bytes + record.body_bytes;
    if (this.#kept.size >= RETRIES_WAITING_MAX || bytes > RETRIES_WAITING_MAX_BYTES) return false;
    this.#kept.set(record.id, { record, due_ms, is_due: false });
    this.#kept_bytes = bytes;
    return true;
  }

  /** A record that was kept is due. */
  noteDue(id: number): void {
    const kept = this.#kept.get(id);
    if (!kept || kept.is_due) return;
    kept.is_due = true;
    this.#insertRetries([kept.record]);
  }

  #forgetKept(id: number): void {
    const kept = this.#kept.get(id);
    if (!kept) return;
    this.#kept.delete(id);
    this.#kept_bytes -= kept.record.body_bytes;
  }

  /** Gives back retries that are not overdue: while the endpoint backs off, they may be wanted as its probe. */
  releaseRetries(): void {
    const now_ms = this.#store.now();
    const waiting = [...this.#kept.values()].filter(({ is_due }) => !is_due).map(({ record }) => record);
    const released = this.#retries.filter(({ deadline_ms }) => deadline_ms > now_ms).concat(waiting);
    if (released.length === 0) return;
    this.#retries = this.#retries.filter(({ deadline_ms }) => deadline_ms <= now_ms);
    for (const { id } of released) this.release(id);
    this.#next_due_ms = 0;
    if (waiting.length > 0) this.#next_deadline_ms = 0;
  }

  /** Notes that a record is due again at `due_ms` of the store's clock. */
  noteRetry(due_ms: number): void {
    this.#next_due_ms = Math.min(this.#next_due_ms, due_ms);
    this.#next_deadline_ms = 0;
  }

  /** Makes the next refill read the due retries, whatever was known of them. */
  forgetDueTime(): void {
    this.#next_due_ms = 0;
  }

  /** Whether there is something to read from the store now. */
  needsRefill(is_healthy: boolean): boolean {
    if (this.#is_behind && this.#isLow()) return true;
    if (this.#hasReadRetries()) return false;
    return (is_healthy ? this.#next_due_ms : this.#next_deadline_ms) <= this.#store.now();
  }

  /** Whether retries that were read are left. Kept ones must not hold up those in the store. */
  #hasReadRetries(): boolean {
    return this.#retries.some(({ id }) => !this.#kept.has(id));
  }

  #isLow(): boolean {
    return this.#untried.length <= WINDOW_RECORDS - READ_RECORDS && this.#untried_bytes < WINDOW_BYTES;
  }

  /** Whether a refill is under way. */
  get is_refilling(): boolean {
    return this.#is_refilling;
  }

  /**
   * Reads due records. One refill runs at a time: a call during it resolves to false at once and makes it read once
   * more. Rejects while the store is out of order.
   */
  async refill(isHealthy: () => boolean): Promise<boolean> {
    this.#refills_again = this.#is_refilling;
    if (this.#is_refilling) return false;
    this.#is_refilling = true;
    try {
      do {
        this.#refills_again = false;
        await this.readUntried();
        await this.#readRetries(isHealthy());
      } while (this.#refills_again);
      return true;
    } finally {
      this.#is_refilling = false;
    }
  }

  /** Reads untried records where the window has room for them. Rejects while the store is out of order. */
  async readUntried(): Promise<void> {
    if (this.#is_reading || !this.#is_behind || !this.#isLow()) return;
    this.#is_reading = true;
    this.#is_behind = false;
    try {
      const { records, more } = await this.#store.untried(this.#last_read_id, READ_RECORDS);
      this.#addUntried(records);
      this.#is_behind ||= more;
    } catch (error) {
      this.#is_behind = true;
      throw error;
    } finally {
      this.#is_reading = false;
    }
  }

  /** Reads the retries that are due; of an endpoint that is not healthy, those whose window is over. */
  async #readRetries(is_healthy: boolean): Promise<void> {
    if (this.#hasReadRetries()) return;
    const limit = RETRY_RECORDS + this.#held.size;
    if (is_healthy) {
      if (this.#next_due_ms > this.#store.now()) return;
      this.#next_due_ms = FOREVER;
      try {
        const { records, next_due_ms } = await this.#store.due(limit);
        this.#next_due_ms = Math.min(this.#next_due_ms, next_due_ms ?? FOREVER);
        this.#addRetries(records);
      } catch (error) {
        this.#next_due_ms = 0;
        throw error;
      }
    } else if (this.#next_deadline_ms <= this.#store.now()) {
      const { records, next_deadline_ms } = await this.#store.overdue(limit);
      this.#next_deadline_ms = next_deadline_ms ?? FOREVER;
      this.#addRetries(records);
    }
  }

  #addRetries(records: DueRecord[]): void {
    // What is due is what the row says: a clock that was set may be ahead of the timer of a kept record.
    for (const { id } of records) this.noteDue(id);
    const fresh = records.filter(({ id }) => !this.#held.has(id));
    for (const { id } of fresh) this.#held.add(id);
    this.#insertRetries(fresh);
  }

  #insertRetries(records: DueRecord[]): void {
    this.#retries = [...this.#retries, ...records].sort((a, b) => a.id - b.id);
  }

  /**
   * When the next work is due that no ending attempt triggers, in ms of the store's clock; infinite if there is none.
   * `may_start`: whether an attempt may start now.
   */
  nextWakeMs(is_healthy: boolean, may_start: boolean): number {
    const has_retries = this.#retries.length > 0;
    if (is_healthy) return has_retries ? FOREVER : this.#next_due_ms;
    const untried_ms = may_start ? (this.#untried[0]?.deadline_ms ?? FOREVER) : FOREVER;
    return Math.min(has_retries ? FOREVER : this.#next_deadline_ms, untried_ms);
  }
}
