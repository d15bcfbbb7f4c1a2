import type { Clock, Timer } from '../../base/clock.ts';
import { COMMIT_TIMEOUT_MS } from '../../contract/defaults.ts';
import type { DeliveryDetail, DeliveryPage, FinalState, OutboxCounts } from '../../contract/deliveries.ts';
import { ApiError, StartError } from '../../contract/errors.ts';
import type {
  Adoption,
  Append,
  AppendResult,
  AttemptOutcome,
  DeliveryFilter,
  DeliveryStore,
  DueRecord,
  InspectionStore,
  RecordsAddedListener,
  StreamRecord,
} from '../store.ts';
import { OutboxThread } from './outbox-thread.ts';
import { newBatch, type PendingBatch } from './pending-batch.ts';
import { PendingCalls } from './pending-calls.ts';
import type {
  BatchDone,
  CallName,
  Calls,
  FromWriter,
  Mended,
  WriterCall,
  WriterSettings,
} from './protocol.ts';
import type { Ownership } from './rows/outbox-state.ts';

/** This many appends go to an idle writer at once, although more may come in this turn. */
const EARLY_APPENDS = 8;
/** Records made pending again in one commit. */
const REPLAYED_AT_ONCE = 500;
/** How long a copy of the whole database may take. */
const COPY_TIMEOUT_MS = 60_000;
/** No caller waits for outcomes: they wait for an append to share a commit with, up to this number and this time. */
const WAITING_OUTCOMES = 128;
const OUTCOME_WAIT_MS = 5;

/** Calls of a start without backlog: cheap enough to be answered in the main thread. */
const CALLS_OF_A_START = new Set<CallName>([
  'adopt',
  'untried',
  'due',
  'overdue',
  'probeCandidate',
  'isPruneDue',
  'lastSequence',
  'oldestPending',
  'close',
]);

/** A commit that was tried, for metrics. */
export interface CommitReport {
  /** How long it took. */
  commit_ms: number;
  /** Appends that shared it. */
  batch_size: number;
  /** The event types of the records that it added. */
  enqueued: string[];
  /** Why it did not reach the disk, or null. */
  trouble: string | null;
}

/**
 * The outbox as the daemon's main thread sees it: all that one turn of the event loop asks for goes to the writer
 * thread as one message. An append that is not answered in time gets `unavailable`; it may still be kept.
 */
export class OutboxClient implements DeliveryStore, InspectionStore {
  readonly #host: OutboxThread;
  readonly #clock: Clock;
  readonly #on_fault: (error: Error) => void;
  #offset_ms = 0;
  #counts: OutboxCounts = { pending: 0, delivered: 0, failed: 0, expired: 0, foreign: 0, bytes: 0 };
  #next: PendingBatch | null = null;
  #number = 0;
  /** Batches that the writer has not answered yet. */
  #under_way = 0;
  #is_flush_due = false;
  #outcome_timer: Timer | null = null;
  readonly #batches = new Map<number, PendingBatch>();
  readonly #calls: PendingCalls;
  #timer: Timer | null = null;
  #wanted: () => boolean = () => false;
  #on_records_added: RecordsAddedListener = () => {};
  #on_commit_measured: (report: CommitReport) => void = () => {};
  #on_mended: (mended: Mended) => void = () => {};
  /** An append was not answered in time, and nothing was since. */
  #is_stuck = false;
  #pace: (waiting: number) => number = (waiting) => waiting;
  #next_commit = Promise.withResolvers<DueRecord[] | null>();
  #is_commit_awaited = false;
  #sandbox_id: string | null = null;
  #is_closed = false;

  private constructor(settings: WriterSettings, clock: Clock, on_fault: (error: Error) => void) {
    this.#host = new OutboxThread(settings, clock, {
      receive: (message) => this.#receive(message),
      fail: (error) => this.#fail(error),
    });
    this.#clock = clock;
    this.#calls = new PendingCalls(clock);
    this.#on_fault = on_fault;
  }

  /**
   * Opens the outbox, in a writer thread or, with `begins_here`, in this thread until there is more to do than a start
   * asks for. Throws StartError where it cannot be used, and `outbox_unavailable` where that may pass. `on_fault`: the
   * writer died, and nothing is kept from then on.
   */
  static async open(
    settings: WriterSettings,
    clock: Clock,
    on_fault: (error: Error) => void,
    begins_here = false,
  ): Promise<OutboxClient> {
    const store = new OutboxClient(settings, clock, on_fault);
    let opened = begins_here ? store.#host.openHere() : await store.#host.openInThread();
    if (opened.kind === 'salvage_due') opened = await store.#host.openInThread();
    if (opened.kind !== 'opened') {
      store.#is_closed = true;
      await store.#host.end();
      const { message, may_pass } = opened.kind === 'refused' ? opened : { message: '', may_pass: true };
      if (may_pass) throw new ApiError('outbox_unavailable', message);
      throw new StartError(message);
    }
    store.#offset_ms = opened.offset_ms;
    store.#counts = opened.counts;
    store.#sandbox_id = opened.sandbox_id;
    return store;
  }

  /** The store's clock, in ms. */
  now(): number {
    return Math.round(this.#clock.monotonicMs()) + this.#offset_ms;
  }

  /** Records by state, and bytes, as of the last answer of the writer. */
  counts(): OutboxCounts {
    return this.#counts;
  }

  /** The sandbox that the outbox belonged to when it was opened; null where it is new. */
  get found_sandbox_id(): string | null {
    return this.#sandbox_id;
  }

  /** Whether commits are made in a thread of their own. */
  get is_in_thread(): boolean {
    return this.#host.is_in_thread;
  }

  /** Resolves when the thread has the files, or cannot be started for now; never where no move was begun. */
  get moved(): Promise<void> {
    return this.#host.moved;
  }

  /** See `DeliveryStore.onRecordsAdded`. */
  onRecordsAdded(wanted: () => boolean, listener: RecordsAddedListener): void {
    this.#wanted = wanted;
    this.#on_records_added = listener;
  }

  /** Calls `listener` after every commit that was tried. */
  onCommitMeasured(listener: (report: CommitReport) => void): void {
    this.#on_commit_measured = listener;
  }

  /** Calls `listener` when the writer has repaired something that was damaged or removed. */
  onMended(listener: (mended: Mended) => void): void {
    this.#on_mended = listener;
  }

  /** Resolves to the records that the next commit adds; null where they must be read. */
  nextCommit(): Promise<DueRecord[] | null> {
    this.#is_commit_awaited = true;
    return this.#next_commit.promise;
  }

  /** `pace` returns how many of the waiting appends may be committed in this turn; the rest wait for the next. */
  paceAppends(pace: (waiting: number) => number): void {
    this.#pace = pace;
  }

  /** How long the oldest append has waited for its answer, in ms; 0 where none waits. */
  waitingMs(): number {
    if (this.#is_stuck) return COMMIT_TIMEOUT_MS;
    for (const { answer, sent_ms, is_given_up } of this.#batches.values()) {
      if (answer.length > 0 && !is_given_up) return this.#clock.monotonicMs() - sent_ms;
    }
    return 0;
  }

  /** Commits an append. Never rejects: see `AppendResult`. */
  append(append: Append): Promise<AppendResult> {
    // While the disk hangs, nothing more may queue up.
    if (this.#is_closed || this.#is_stuck) return Promise.resolve({ outcome: 'unavailable' });
    if (append.tree || append.drafts.some(({ event_type }) => event_type !== 'sandbox.ready')) {
      this.#host.moveToThread();
    }
    const { message, answer } = this.#collect();
    message.appends.push(append);
    const answered = new Promise<AppendResult>((resolve) => answer.push(resolve));
    if (message.appends.length === EARLY_APPENDS && this.#under_way === 0) this.#flush();
    else this.#flushSoon();
    return answered;
  }

  /** See `DeliveryStore.record`. */
  record(outcome: AttemptOutcome): Promise<void> {
    if (this.#is_closed) return new Promise(() => {});
    if (outcome.decision.state !== 'delivered') this.#host.moveToThread();
    const { message, recorded } = this.#collect();
    message.outcomes.push(outcome);
    // Waking the writer, and a sync, cost more than they do.
    if (message.outcomes.length === WAITING_OUTCOMES) this.#flushSoon();
    this.#outcome_timer ??= this.#clock.after(OUTCOME_WAIT_MS, () => this.#flush());
    return new Promise((resolve) => recorded.push(resolve));
  }

  #collect(): PendingBatch {
    this.#next ??= newBatch(++this.#number);
    return this.#next;
  }

  /** Sends what is collected, at the end of this turn. */
  #flushSoon(): void {
    if (this.#is_flush_due) return;
    this.#is_flush_due = true;
    setImmediate(() => {
      this.#is_flush_due = false;
      this.#flush();
    });
  }

  #flush(): void {
    this.#outcome_timer?.cancel();
    this.#outcome_timer = null;
    const batch = this.#next;
    if (!batch) return;
    this.#next = null;
    const admitted = Math.max(1, this.#pace(batch.message.appends.length));
    if (admitted < batch.message.appends.length) {
      const later = this.#collect();
      later.message.appends = batch.message.appends.splice(admitted);
      later.answer = batch.answer.splice(admitted);
      this.#flushSoon();
    }
    batch.message.wants_records = this.#is_commit_awaited || this.#wanted();
    batch.sent_ms = this.#clock.monotonicMs();
    this.#batches.set(batch.message.batch, batch);
    this.#under_way += 1;
    this.#host.post(batch.message);
    this.#watch();
  }

  /** One timer for the batch that has waited longest. */
  #watch(): void {
    if (this.#timer) return;
    for (const batch of this.#batches.values()) {
      if (batch.answer.length === 0 || batch.is_given_up) continue;
      const due_ms = batch.sent_ms + COMMIT_TIMEOUT_MS - this.#clock.monotonicMs();
      this.#timer = this.#clock.after(due_ms, () => {
        this.#timer = null;
        this.#giveUp();
        this.#watch();
      });
      return;
    }
  }

  #giveUp(): void {
    const now_ms = this.#clock.monotonicMs();
    for (const batch of this.#batches.values()) {
      if (now_ms - batch.sent_ms < COMMIT_TIMEOUT_MS - 1) return;
      if (batch.is_given_up || batch.answer.length === 0) continue;
      this.#is_stuck = true;
      batch.is_given_up = true;
      batch.message.appends.forEach(({ tree }, i) => {
        if (!tree) batch.answer[i]?.({ outcome: 'unavailable' });
      });
    }
  }

  #receive(message: FromWriter): void {
    this.#is_stuck = false;
    if (message.kind === 'mended') this.#on_mended(message);
    if (message.kind === 'done') {
      this.#counts = message.counts;
      const batch_size = message.batches.reduce((sum, { results }) => sum + results.length, 0);
      const enqueued = message.batches.flatMap((done) => this.#enqueued(done));
      this.#on_commit_measured({
        commit_ms: message.commit_ms,
        batch_size,
        enqueued,
        trouble: message.trouble,
      });
      for (const done of message.batches) this.#resolveBatch(done);
      if (message.added?.length === 0) return;
      this.#on_records_added(message.added);
      this.#next_commit.resolve(message.added);
      this.#next_commit = Promise.withResolvers();
      this.#is_commit_awaited = false;
    } else if (message.kind === 'answer') {
      this.#counts = message.counts;
      this.#calls.answer(message);
    }
  }

  #enqueued({ batch, results }: BatchDone): string[] {
    const appends = this.#batches.get(batch)?.message.appends ?? [];
    return results.flatMap(({ outcome }, i) =>
      outcome === 'committed' ? (appends[i]?.drafts ?? []).map(({ event_type }) => event_type) : [],
    );
  }

  #resolveBatch(done: BatchDone): void {
    const batch = this.#batches.get(done.batch);
    if (!batch) return;
    if (!batch.is_answered) this.#under_way -= 1;
    batch.is_answered = true;
    done.results.forEach((result, i) => {
      batch.answer[i]?.(result);
    });
    batch.answer = [];
    if (!done.is_recorded) return;
    for (const recorded of batch.recorded) recorded();
    this.#batches.delete(done.batch);
    if (this.#batches.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #call<Name extends CallName>(
    name: Name,
    input: Calls[Name]['in'],
    within_ms = COMMIT_TIMEOUT_MS,
  ): Promise<Calls[Name]['out']> {
    if (this.#is_closed) return Promise.reject(new ApiError('outbox_unavailable'));
    if (!CALLS_OF_A_START.has(name)) this.#host.moveToThread();
    const call = ++this.#number;
    const answered = this.#calls.add<Calls[Name]['out']>(call, within_ms);
    this.#host.post({ kind: 'call', call, name, input } as WriterCall);
    return answered;
  }

  /** Makes the outbox this sandbox's. Rejects with `outbox_unavailable`. */
  async adopt(owner: Ownership): Promise<Adoption> {
    const adoption = await this.#call('adopt', owner);
    // Not before: the move writes the log back, and `adopt` may have to keep damaged files as it found them.
    if (this.#counts.pending > 0) this.#host.moveToThread();
    return adoption;
  }

  /** See `DeliveryStore.untried`. */
  untried(after_id: number, limit: number): Promise<{ records: DueRecord[]; more: boolean }> {
    return this.#call('untried', { after_id, limit });
  }

  /** See `DeliveryStore.due`. */
  due(limit: number): Promise<{ records: DueRecord[]; next_due_ms: number | null }> {
    return this.#call('due', { limit });
  }

  /** See `DeliveryStore.overdue`. */
  overdue(limit: number): Promise<{ records: DueRecord[]; next_deadline_ms: number | null }> {
    return this.#call('overdue', { limit });
  }

  /** See `DeliveryStore.probeCandidate`. */
  probeCandidate(in_flight: number[]): Promise<DueRecord | null> {
    return this.#call('probeCandidate', { in_flight });
  }

  /** One page of deliveries, read in parts so that publishes are committed in between. */
  async list(filter: DeliveryFilter): Promise<DeliveryPage> {
    const deliveries: DeliveryPage['deliveries'] = [];
    let { before_id } = filter;
    for (let last_id: number | null = null; ; ) {
      const part = await this.#call('list', {
        ...filter,
        before_id,
        limit: filter.limit - deliveries.length,
      });
      deliveries.push(...part.deliveries);
      last_id = part.last_id ?? last_id;
      if (part.more) return { deliveries, next_cursor: last_id === null ? null : String(last_id) };
      if (part.scanned_to === null) return { deliveries, next_cursor: null };
      before_id = part.scanned_to;
    }
  }

  /** One delivery with its body and attempts, or null. */
  find(event_id: string): Promise<DeliveryDetail | null> {
    return this.#call('find', { event_id });
  }

  /** See `InspectionStore.replay`. */
  replay(event_id: string): Promise<boolean> {
    return this.#call('replay', { event_id });
  }

  /**
   * Replays every record in a state, in parts so that publishes are committed in between; resolves to their number.
   * A record that ends in that state meanwhile stays as it is.
   */
  async replayAll(state: FinalState): Promise<number> {
    const all = this.#counts[state];
    let replayed = 0;
    while (replayed < all) {
      const limit = Math.min(REPLAYED_AT_ONCE, all - replayed);
      const some = await this.#call('replaySome', { state, limit });
      if (some === 0) break;
      replayed += some;
    }
    return replayed;
  }

  /** See `InspectionStore.after`. */
  after(sequence: number, limit: number): Promise<StreamRecord[]> {
    return this.#call('after', { sequence, limit });
  }

  /** The highest sequence that was given out; 0 before the first. */
  lastSequence(): Promise<number> {
    return this.#call('lastSequence', null);
  }

  /** Wall time of the oldest pending record's commit, or null. */
  oldestPending(): Promise<number | null> {
    return this.#call('oldestPending', null);
  }

  /** Rows of the watched tree after an id, in order. */
  tree(after_id: number, limit: number): Promise<{ id: number; entry: string }[]> {
    return this.#call('tree', { after_id, limit });
  }

  /** Whether `prune` has something to remove or to give back. */
  isPruneDue(): Promise<boolean> {
    return this.#call('isPruneDue', null);
  }

  /** Removes some of what was kept long enough; `more` where there is more to remove. */
  prune(): Promise<{ more: boolean }> {
    return this.#call('prune', null);
  }

  /** Writes the log back into the database file and empties it. */
  async checkpoint(): Promise<void> {
    await this.#call('checkpoint', null);
  }

  /** Writes a copy of the database, as of the last commit, to a path; what is there is replaced. */
  async copyTo(path: string): Promise<void> {
    await this.#call('copyTo', { path }, COPY_TIMEOUT_MS);
  }

  /** Writes back, closes the files and ends the thread. Idempotent. */
  async close(): Promise<void> {
    if (this.#is_closed) return;
    while (this.#next) this.#flush();
    const closed = this.#call('close', null);
    this.#is_closed = true;
    await closed.catch(() => {});
    await this.#host.end();
  }

  #fail(error: unknown): void {
    if (this.#is_closed) return;
    this.#is_closed = true;
    for (const batch of this.#batches.values()) {
      for (const answer of batch.answer) answer({ outcome: 'unavailable' });
    }
    this.#calls.rejectAll();
    this.#on_fault(error as Error);
  }
}
