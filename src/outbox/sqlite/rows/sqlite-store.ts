import type { Database } from 'better-sqlite3';
import type { Clock } from '../../../base/clock.ts';
import { newEventIds } from '../../../base/ids.ts';
import { OUTBOX_RESERVE_RECORDS } from '../../../contract/defaults.ts';
import type { DeliveryState, OutboxCounts } from '../../../contract/deliveries.ts';
import { type Identity, signedEvent } from '../../../webhook/signed-event.ts';
import { attemptRow, outcomeChange, replayChange } from '../../delivery-lifecycle.ts';
import type { Append, AppendResult, AttemptOutcome, DueRecord, EventDraft } from '../../store.ts';
import { type KeepForeign, OtherSandboxes, type OwnState } from './other-sandboxes.ts';
import { isAuthentic, recordKey, recordMac, type UntrustedRow } from './record-mac.ts';
import { hasPrunable, type Keep, takePrunable } from './retention.ts';
import {
  checksumOf,
  dueRecord,
  isWhole,
  type OutboxRow,
  type RecordRow,
  recordSizeBytes,
  type StoredDelivery,
  type StoredRecord,
} from './rows.ts';
import { prepareStatements, type Statements } from './statements.ts';
import { keptClock, storeNow } from './store-clock.ts';

/** How much of the backlog is read at once: a record may have a mebibyte. */
const READ_BYTES = 4 * 1024 * 1024;

/** The share of both bounds that file events may use: the rest is for publishes. Meanwhile, names wait in the watch. */
const FILE_EVENTS_SHARE = 0.5;

/** What a record of the reserve takes at most, on average: two previews of output and more. */
const RESERVE_RECORD_BYTES = 16 * 1024;

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

/**
 * The outbox's rows. Every verb is synchronous and throws what SQLite throws. Changes are made between `begin` and
 * `commit`, so that many share one sync; after `rollback` nothing of them is left, in memory either.
 */
export class SqliteStore {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #limits: OutboxLimits;
  readonly #sql: Statements;
  readonly #others: OtherSandboxes;
  #owner: Ownership | null = null;
  #key: Buffer | null = null;
  #row: OutboxRow;
  #before: OutboxRow;
  /** Store time minus monotonic time: continues the store's clock across restarts. */
  readonly #offset_ms: number;
  #added: DueRecord[] = [];
  /** Event ids for what this transaction adds, made with one call to the kernel. */
  #event_ids: string[] = [];
  /** No record up to this one is untried. */
  #tried_up_to_id = 0;
  /** Ids of pending records that were read and must not be sent: changed by the disk, or made by another program. */
  readonly #unsendable = { damaged: [] as number[], forged: [] as number[] };

  /**
   * `before`: the store that this one replaces; numbers and the clock continue from there. `offset_ms`: continues the
   * clock alone, because the rows are the same.
   */
  constructor(db: Database, clock: Clock, limits: OutboxLimits, before?: SqliteStore, offset_ms?: number) {
    this.#db = db;
    this.#clock = clock;
    this.#limits = limits;
    this.#sql = prepareStatements(db);
    this.#others = new OtherSandboxes(this.#sql);
    this.#row = this.#sql.readOutbox.get() as OutboxRow;
    this.#before = { ...this.#row };
    this.#offset_ms =
      before?.offset_ms ?? offset_ms ?? Math.round(storeNow(this.#row, clock) - clock.monotonicMs());
    if (!before) return;
    const { number, sandbox_id, next_sequence, first_id, next_id, is_ready } = before.#row;
    this.#owner = before.#owner;
    this.#key = before.#key;
    Object.assign(this.#row, { number, sandbox_id, next_sequence, first_id, next_id, is_ready });
  }

  /** The sandbox that the outbox is for; null before `adopt`. */
  get owner(): Ownership | null {
    return this.#owner;
  }

  /** Store time minus monotonic time, in ms. */
  get offset_ms(): number {
    return this.#offset_ms;
  }

  /** The store's clock, in ms. */
  now(): number {
    return Math.round(this.#clock.monotonicMs()) + this.#offset_ms;
  }

  /** Records by state, and bytes. */
  counts(): OutboxCounts {
    const { pending, delivered, failed, expired, foreign, bytes } = this.#row;
    return { pending, delivered, failed, expired, foreign, bytes };
  }

  /** The sequence of the next record. */
  get next_sequence(): number {
    return this.#row.next_sequence;
  }

  /** The number that marks the deliveries of this sandbox; those with another number are foreign. */
  get number(): number {
    return this.#row.number;
  }

  /** The id before the first that a record after a sequence can have; exact since this sandbox was the last to change. */
  idBefore(sequence: number): number {
    const { next_id, next_sequence, first_id } = this.#row;
    const id = sequence + next_id - next_sequence;
    return id >= first_id - 1 ? id : sequence;
  }

  /** The highest id that was assigned. */
  get last_id(): number {
    return this.#row.next_id - 1;
  }

  /** The sandbox that the outbox was last written for; null where it is new. */
  get sandbox_id(): string | null {
    return this.#row.sandbox_id;
  }

  /** Whether `sandbox.ready` was committed and no `sandbox.killed` after it. */
  get is_ready(): boolean {
    return this.#row.is_ready === 1;
  }

  /** Begins a transaction. `drafts`: how many are about to be appended, at least. */
  begin(drafts = 0): void {
    this.#before = { ...this.#row };
    this.#added = [];
    this.#event_ids = newEventIds(drafts, this.#clock.wallMs());
    this.#sql.begin.run();
  }

  /** Makes everything since `begin` durable: returns after the sync. The records that were added are returned. */
  commit(): DueRecord[] {
    Object.assign(this.#row, keptClock(this.#clock, this.now()));
    this.#sql.writeOutbox.run(this.#row);
    this.#sql.commit.run();
    this.#before = { ...this.#row };
    this.#event_ids = [];
    return this.#added;
  }

  /** Takes back everything since `begin`. */
  rollback(): void {
    if (this.#db.inTransaction) this.#sql.rollback.run();
    this.#row = this.#before;
    this.#added = [];
    this.#event_ids = [];
  }

  /**
   * Makes the outbox this sandbox's: the records of every other one are foreign as long as it is. A sandbox that comes
   * back finds its records and numbers as it left them; a new one begins anew. Source: contract section 3, Scope.
   */
  adopt(owner: Ownership): void {
    this.#owner = owner;
    this.#key = recordKey(owner.record_key ?? '');
    const { sandbox_id } = owner;
    const row = this.#row;
    if (row.sandbox_id === sandbox_id) return;
    if (row.sandbox_id === null) {
      row.sandbox_id = sandbox_id;
      return;
    }
    this.#others.change(row, sandbox_id, this.now());
    this.#tried_up_to_id = 0;
    this.#sql.clearTree.run();
  }

  /** Records of other sandboxes that were not delivered. */
  foreignPending(): number {
    return this.#others.pending();
  }

  /** Does not use sequences up to `highest` again: a lost outbox has assigned them. */
  skipSequence(highest: number): void {
    const skipped = Math.max(0, highest + 1 - this.#row.next_sequence);
    this.#row.next_sequence += skipped;
    this.#row.next_id += skipped;
  }

  /** Adds the records of an append, or says why not. */
  append(append: Append): AppendResult {
    const { drafts, tree, requires } = append;
    if (requires !== undefined && !this.#keyed(requires)) return { outcome: 'unneeded' };
    const [first] = drafts;
    if (first?.idempotency_key !== undefined) {
      const earlier = this.#repeated(first, first.idempotency_key);
      if (earlier) return earlier;
    }
    if (first?.event_type === 'sandbox.ready' && this.is_ready) return { outcome: 'unneeded' };
    if (!this.#hasRoom(drafts)) return { outcome: 'full' };
    if (this.#event_ids.length < drafts.length) {
      this.#event_ids = newEventIds(drafts.length, this.#clock.wallMs());
    }
    const event_ids = this.#event_ids.splice(0, drafts.length);
    const records = drafts.map((draft, i) => this.#insert(draft, event_ids[i] as string));
    for (const { id, entry } of tree?.put ?? []) this.#sql.putTree.run(id, entry);
    for (const id of tree?.drop ?? []) this.#sql.dropTree.run(id);
    return { outcome: 'committed', records };
  }

  #keyed(key: string): { event_id: string; sequence: number; body: string } | undefined {
    return this.#sql.byIdempotencyKey.get(this.#row.sandbox_id, key) as
      | { event_id: string; sequence: number; body: string }
      | undefined;
  }

  #repeated(draft: EventDraft, key: string): AppendResult | null {
    const earlier = this.#keyed(key);
    if (!earlier) return null;
    // The payload is the body's last value, so it ends just before the closing brace.
    const start = earlier.body.length - 1 - draft.payload.length;
    const is_same =
      earlier.body.slice(start, -1) === draft.payload && earlier.body.slice(0, start).endsWith('"payload":');
    if (!is_same) return { outcome: 'conflict' };
    return {
      outcome: 'repeated',
      records: [{ event_id: earlier.event_id, sequence: earlier.sequence }],
    };
  }

  #hasRoom(drafts: EventDraft[]): boolean {
    const { failed, expired, pending, bytes } = this.#row;
    const all = (kind: RegExp) => drafts.every(({ event_type }) => kind.test(event_type));
    const reserve_records = all(/^(sandbox|process)\./) ? OUTBOX_RESERVE_RECORDS : 0;
    const share = drafts.length > 0 && all(/^file\./) ? FILE_EVENTS_SHARE : 1;
    const max_records = Math.ceil(this.#limits.max_records * share) + reserve_records;
    if (pending + failed + expired + drafts.length > max_records) return false;
    return bytes < this.#limits.max_bytes * share + reserve_records * RESERVE_RECORD_BYTES;
  }

  #insert(draft: EventDraft, event_id: string): { event_id: string; sequence: number } {
    const owner = this.#owner as Ownership;
    const sequence = this.#row.next_sequence++;
    const id = this.#row.next_id++;
    const envelope = {
      event_id,
      event_type: draft.event_type,
      happened_at_ms: draft.happened_at_ms,
      sandbox_id: owner.sandbox_id,
      team_id: owner.team_id,
      sequence,
      payload: draft.payload,
    };
    const { headers, body } = signedEvent(envelope, 'sandboxd', owner.secret);
    const headers_text = JSON.stringify(headers);
    const size_bytes = recordSizeBytes(headers_text, body);
    const created_at_ms = this.#clock.wallMs();
    const deadline_ms = this.now() + this.#limits.window_ms;
    const { sandbox_id } = owner;
    const { event_type } = draft;
    const fields = { event_id, event_type, sandbox_id, sequence, created_at_ms };
    this.#sql.insert.run(
      id,
      event_id,
      event_type,
      sandbox_id,
      sequence,
      headers_text,
      body,
      checksumOf(headers_text, body),
      draft.idempotency_key ?? null,
      created_at_ms,
      this.#key && recordMac(this.#key, { ...fields, headers: headers_text, body }),
    );
    this.#sql.insertDelivery.run(id, this.#row.number, size_bytes, deadline_ms);
    this.#row.pending += 1;
    this.#row.bytes += size_bytes;
    if (draft.event_type === 'sandbox.ready') this.#row.is_ready = 1;
    if (draft.event_type === 'sandbox.killed') this.#row.is_ready = 0;
    this.#added.push({
      id,
      event_id,
      event_type: draft.event_type,
      headers,
      body,
      attempts: 0,
      failures: 0,
      deadline_ms,
      probe_ms: 0,
      created_at_ms,
    });
    return { event_id, sequence };
  }

  /** Records an attempt and the new state of its record. A record that is no longer pending stays as it is. */
  recordOutcome(outcome: AttemptOutcome): void {
    const wall_ms = this.#clock.wallMs();
    const now_ms = this.now();
    const size_bytes = this.#sql.pendingSize.get(outcome.id) as number | undefined;
    if (size_bytes === undefined) return;
    const change = outcomeChange(outcome.decision, now_ms);
    const finished_at_ms = change.finished_ms === null ? null : wall_ms;
    this.#sql.recordOutcome.run({ ...change, finished_at_ms, attempts: outcome.attempt, id: outcome.id });
    this.#move('pending', change.state, size_bytes);
    this.#sql.recordAttempt.run({ record_id: outcome.id, ...attemptRow(outcome, wall_ms - now_ms) });
  }

  #move(from: OwnState, to: OwnState, size_bytes: number): void {
    this.#row[from] -= 1;
    this.#row[to] += 1;
    this.#row[from === 'delivered' ? 'delivered_bytes' : 'bytes'] -= size_bytes;
    this.#row[to === 'delivered' ? 'delivered_bytes' : 'bytes'] += size_bytes;
  }

  /** See `DeliveryStore.untried`. */
  untried(after_id: number, limit: number): { records: DueRecord[]; more: boolean } {
    const rows: RecordRow[] = [];
    let bytes = 0;
    let more = false;
    const from_id = Math.max(after_id, this.#tried_up_to_id);
    for (const row of this.#sql.untried.iterate(
      this.#row.number,
      from_id,
      limit + 1,
    ) as IterableIterator<RecordRow>) {
      more = rows.length === limit || bytes >= READ_BYTES;
      if (more) break;
      rows.push(row);
      bytes += row.body.length;
    }
    // Nothing becomes untried again: what was skipped once need not be read again.
    if (from_id === this.#tried_up_to_id) this.#tried_up_to_id = (rows[0]?.id ?? this.#row.next_id) - 1;
    return { records: this.#sendable(rows), more };
  }

  /** See `DeliveryStore.due`. */
  due(limit: number): { records: DueRecord[]; next_due_ms: number | null } {
    const now_ms = this.now();
    const rows = this.#sql.due.all(this.#row.number, limit + 1) as RecordRow[];
    const ready = rows.slice(0, limit).filter((row) => row.due_ms <= now_ms);
    return { records: this.#sendable(ready), next_due_ms: rows[ready.length]?.due_ms ?? null };
  }

  /** See `DeliveryStore.overdue`. */
  overdue(limit: number): { records: DueRecord[]; next_deadline_ms: number | null } {
    const now_ms = this.now();
    const rows = this.#sql.overdue.all(this.#row.number, limit + 1) as RecordRow[];
    const ready = rows.slice(0, limit).filter((row) => row.deadline_ms <= now_ms);
    return { records: this.#sendable(ready), next_deadline_ms: rows[ready.length]?.deadline_ms ?? null };
  }

  /** See `DeliveryStore.probeCandidate`. */
  probeCandidate(in_flight: number[]): DueRecord | null {
    const rows = this.#sql.probe.all(this.#row.number, in_flight.length + 1) as RecordRow[];
    const row = rows.find(({ id }) => !in_flight.includes(id));
    return row ? (this.#sendable([row])[0] ?? null) : null;
  }

  /** Leaves out, and notes, the records that are not as they were committed: they are never sent. */
  #sendable(rows: RecordRow[]): DueRecord[] {
    return rows.flatMap((row) => {
      const is_own = this.#isOwn(row);
      const record = is_own && isWhole(row) ? dueRecord(row) : null;
      if (record) return [record];
      this.#unsendable[is_own || !isWhole(row) ? 'damaged' : 'forged'].push(row.id);
      return [];
    });
  }

  /** Whether this sandbox's daemon made a record; true without a record key, where that cannot be checked. */
  #isOwn(row: UntrustedRow): boolean {
    return this.#key === null || (row.sandbox_id === this.#owner?.sandbox_id && isAuthentic(this.#key, row));
  }

  /** Whether records were read that must not be sent. */
  get has_unsendable(): boolean {
    return this.#unsendable.damaged.length + this.#unsendable.forged.length > 0;
  }

  /** Makes the records that must not be sent `failed`; returns how many were damaged and how many forged. */
  failUnsendable(): { damaged: number; forged: number } {
    const { damaged, forged } = this.#unsendable;
    return { damaged: this.#fail(damaged.splice(0)), forged: this.#fail(forged.splice(0)) };
  }

  #fail(ids: number[]): number {
    const now = { finished_ms: this.now(), finished_at_ms: this.#clock.wallMs() };
    let failed = 0;
    for (const id of ids) {
      const row = this.#sql.fail.get({ id, ...now }) as { size_bytes: number } | undefined;
      if (!row) continue;
      this.#move('pending', 'failed', row.size_bytes);
      failed += 1;
    }
    return failed;
  }

  /** Makes a finished record pending again, with the same bytes and a new window. Source: contract section 4. */
  replay(event_id: string): boolean {
    const row = this.#sql.stateOf.get(event_id) as
      | { id: number; sandbox: number; state: OwnState; size_bytes: number }
      | undefined;
    if (row?.sandbox !== this.#row.number) return false;
    if (row.state === 'pending') return true;
    const now_ms = this.now();
    this.#sql.replay.run({ id: row.id, ...replayChange(now_ms, this.#limits.window_ms) });
    this.#move(row.state, 'pending', row.size_bytes);
    return true;
  }

  /** Event ids in a state, for replaying them a part at a time. */
  idsIn(state: OwnState, limit: number): string[] {
    const rows = this.#sql.idsIn.all(this.#row.number, state, limit) as { event_id: string }[];
    return rows.map((row) => row.event_id);
  }

  /** Whether `prune` would remove anything. */
  hasPrunable(rule: Keep): boolean {
    return hasPrunable(this.#sql, this.#row, rule, this.now());
  }

  /** Removes up to `limit` finished records that were kept long enough, or are too many, oldest first; returns how many. */
  prune(rule: Keep, limit: number): number {
    const gone = takePrunable(this.#sql, this.#row, rule, this.now(), limit);
    this.#remove(gone);
    return gone.length;
  }

  #remove(gone: number[]): void {
    const ids = JSON.stringify(gone);
    this.#sql.remove.run(ids);
    this.#sql.removeDeliveries.run(ids);
    this.#sql.removeAttempts.run(ids);
  }

  /** Whether `pruneForeign` would remove anything. */
  hasPrunableForeign(keep: KeepForeign): boolean {
    return this.#row.foreign > 0 && this.#others.hasPrunable(keep, this.now());
  }

  /** Removes up to `limit` records of other sandboxes that were kept long enough; tells how many. */
  pruneForeign(keep: KeepForeign, limit: number): number {
    const gone = this.#others.prune(keep, this.now(), limit);
    this.#remove(gone);
    this.#row.foreign -= gone.length;
    return gone.length;
  }

  /** Wall time of the oldest pending record's commit; a replayed one counts from its replay. */
  oldestPending(): number | null {
    const untried = this.untried(0, 1).records[0];
    const [retried] = this.#sql.overdue.all(this.#row.number, 1) as RecordRow[];
    const to_wall_ms = this.#clock.wallMs() - this.now();
    const times_ms = [
      ...(untried ? [untried.created_at_ms] : []),
      ...(retried ? [retried.deadline_ms - this.#limits.window_ms + to_wall_ms] : []),
    ];
    return times_ms.length > 0 ? Math.min(...times_ms) : null;
  }

  /**
   * Takes a record over from a damaged outbox, if it is whole; returns its state, or null. A record whose delivery is
   * not known is sent: a duplicate is better than a loss.
   */
  takeOver(record: StoredRecord, known: StoredDelivery | null, attempts: unknown[][]): DeliveryState | null {
    if (!isWhole(record)) return null;
    const { changes } = this.#sql.takeOver.run({ mac: null, ...record });
    if (changes === 0) return null;
    const is_ours = record.sandbox_id === this.#row.sandbox_id;
    const { state: found } = known ?? { state: 'foreign' };
    // The first format wrote `foreign` over what it was.
    const delivery = known && found !== 'foreign' ? { ...known, state: found } : this.#neverTried(record);
    const { state, size_bytes } = delivery;
    const sandbox = is_ours ? this.#row.number : this.#foreign(record, state);
    this.#sql.takeOverDelivery.run({ ...delivery, id: record.id, sandbox });
    for (const attempt of attempts) this.#sql.insertAttempt.run(record.id, ...attempt);
    if (!is_ours) return 'foreign';
    this.#row[state] += 1;
    this.#row[state === 'delivered' ? 'delivered_bytes' : 'bytes'] += size_bytes;
    if (delivery.due_ms === 0) this.#tried_up_to_id = Math.min(this.#tried_up_to_id, record.id - 1);
    return state;
  }

  #foreign({ sandbox_id, sequence }: StoredRecord, state: OwnState): number {
    this.#row.foreign += 1;
    return this.#others.found(sandbox_id, sequence, state, this.#row.number, this.now());
  }

  #neverTried({ headers, body }: StoredRecord): StoredDelivery & { state: OwnState } {
    return {
      state: 'pending',
      size_bytes: recordSizeBytes(headers, body),
      deadline_ms: this.now() + this.#limits.window_ms,
      due_ms: 0,
      probe_ms: null,
      finished_ms: null,
      finished_at_ms: null,
      attempts: 0,
      failures: 0,
    };
  }

  /** Makes a change wholly or, where it throws, not at all. Call it between `begin` and `commit`. */
  wholly<Result>(change: () => Result): Result {
    const row = { ...this.#row };
    const added = this.#added.length;
    this.#sql.savepoint.run();
    try {
      const result = change();
      this.#sql.release.run();
      return result;
    } catch (error) {
      this.#row = row;
      this.#added.length = added;
      // Where there is no room SQLite has taken back everything already.
      if (this.#db.inTransaction) {
        this.#sql.rollbackTo.run();
        this.#sql.release.run();
      }
      throw error;
    }
  }

  /** Whether an event is kept. */
  has(event_id: string): boolean {
    return this.#sql.stateOf.get(event_id) !== undefined;
  }

  /** Assigns an id that no record has. */
  newId(): number {
    this.#row.first_id = this.#row.next_id + 1;
    return this.#row.next_id++;
  }

  /** Assigns neither a record's id nor, where it is this sandbox's, its sequence to another record. */
  passOver({ id, sandbox_id, sequence }: { id: number; sandbox_id: string; sequence: number }): void {
    this.#row.next_id = Math.max(this.#row.next_id, id + 1);
    this.#row.first_id = this.#row.next_id;
    if (sandbox_id !== this.#row.sandbox_id) return;
    this.#row.next_sequence = Math.max(this.#row.next_sequence, sequence + 1);
  }

  /** Takes rows of the watched tree over from a damaged outbox. */
  takeOverTree(rows: { id: number; entry: string }[]): void {
    for (const { id, entry } of rows) this.#sql.putTree.run(id, entry);
  }

  /** Rows of the watched tree after an id, in order. */
  tree(after_id: number, limit: number): { id: number; entry: string }[] {
    return this.#sql.tree.all(after_id, limit) as { id: number; entry: string }[];
  }
}
