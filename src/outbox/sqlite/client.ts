import type { Clock, Timer } from '../../base/clock.ts';
import { COMMIT_TIMEOUT_MS } from '../../contract/defaults.ts';
import type { DeliveryDetail, DeliveryPage, OutboxCounts } from '../../contract/deliveries.ts';
import { ApiError, StartError } from '../../contract/errors.ts';
import type {
  Adoption,
  Append,
  AppendResult,
  AttemptOutcome,
  CommittedListener,
  DeliveryFilter,
  DeliveryStore,
  DueRecord,
  InspectionStore,
  StreamRecord,
} from '../store.ts';
import { OutboxThread } from './outbox-thread.ts';
import type {
  Batch,
  BatchDone,
  Call,
  CallName,
  Calls,
  FromWriter,
  Mended,
  WriterSettings,
} from './protocol.ts';
import type { Ownership } from './rows/sqlite-store.ts';

/** So many appends go to a writer that has nothing to do, although more may come in this turn. */
const EARLY_APPENDS = 8;
/** Records made pending again in one commit. */
const REPLAYED_AT_ONCE = 500;
/** How long a copy of the whole database may take. */
const COPY_TIMEOUT_MS = 60_000;
/** Nobody waits for outcomes: they wait for an append to go with, but not more than so many, and no longer. */
const WAITING_OUTCOMES = 128;
const OUTCOME_WAIT_MS = 5;

/** What an outbox without backlog is asked before anything happens, and what reads nothing to speak of. */
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

interface PendingBatch {
  message: Batch;
  sent_ms: number;
  answer: ((result: AppendResult) => void)[];
  recorded: (() => void)[];
  is_answered: boolean;
  /** It took too long: who waits for an answer at once has been told. */
  is_given_up: boolean;
}

interface PendingCall {
  resolve: (output: unknown) => void;
  reject: (error: Error) => void;
}

/** What a commit came to, for whoever keeps figures. */
export interface CommitReport {
  commit_ms: number;
  /** Appends that shared it. */
  batch_size: number;
  /** The event types of the records that it added. */
  enqueued: string[];
  trouble: string | null;
}

/**
 * The outbox as the daemon's main thread sees it: all that one turn of the event loop asks for goes to the writer
 * thread as one message. An append that is not answered in time is told `unavailable`; it may still be kept.
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
  readonly #calls = new Map<number, PendingCall>();
  #timer: Timer | null = null;
  #wanted: () => boolean = () => false;
  #on_committed: CommittedListener = () => {};
  #on_commit: (report: CommitReport) => void = () => {};
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
    this.#on_fault = on_fault;
  }

  /**
   * Opens the outbox, in a writer thread or, with `begins_here`, in this thread until there is more to do than a start
   * asks for. Throws StartError where it cannot be used, and the catalogue's `outbox_unavailable` where that may
   * pass. `on_fault`: the writer died, nothing is kept any more.
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

  now(): number {
    return Math.round(this.#clock.monotonicMs()) + this.#offset_ms;
  }

  counts(): OutboxCounts {
    return this.#counts;
  }

  /** Whom the outbox was written for when it was opened; null where it is new. */
  get found_sandbox_id(): string | null {
    return this.#sandbox_id;
  }

  /** Whether commits are made in a thread of their own. */
  get is_in_thread(): boolean {
    return this.#host.is_in_thread;
  }

  /** Resolves when a move to the thread is over; never where none was begun. */
  get moved(): Promise<void> {
    return this.#host.moved;
  }

  onCommitted(wanted: () => boolean, listener: CommittedListener): void {
    this.#wanted = wanted;
    this.#on_committed = listener;
  }

  onCommit(listener: (report: CommitReport) => void): void {
    this.#on_commit = listener;
  }

  /** Calls back when the writer has put something in order that was damaged or removed. */
  onMended(listener: (mended: Mended) => void): void {
    this.#on_mended = listener;
  }

  /** The records that the next commit adds; null where they are to be read. */
  nextCommit(): Promise<DueRecord[] | null> {
    this.#is_commit_awaited = true;
    return this.#next_commit.promise;
  }

  /** How many of the appends that wait may go on in this turn; the rest wait for the next. */
  paceAppends(pace: (waiting: number) => number): void {
    this.#pace = pace;
  }

  /** How long the oldest append has waited for its answer; 0 where none waits. */
  waitingMs(): number {
    if (this.#is_stuck) return COMMIT_TIMEOUT_MS;
    for (const { answer, sent_ms, is_given_up } of this.#batches.values()) {
      if (answer.length > 0 && !is_given_up) return this.#clock.monotonicMs() - sent_ms;
    }
    return 0;
  }

  append(append: Append): Promise<AppendResult> {
    // What waits for a disk that hangs is bounded by the time it takes to find out.
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
    this.#next ??= this.#newBatch();
    return this.#next;
  }

  /** Hands over what is collected, at the end of this turn. */
  #flushSoon(): void {
    if (this.#is_flush_due) return;
    this.#is_flush_due = true;
    setImmediate(() => {
      this.#is_flush_due = false;
      this.#flush();
    });
  }

  #newBatch(): PendingBatch {
    const message: Batch = {
      kind: 'batch',
      batch: ++this.#number,
      appends: [],
      outcomes: [],
      wants_records: false,
    };
    return { message, sent_ms: 0, answer: [], recorded: [], is_answered: false, is_given_up: false };
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
      this.#on_commit({ commit_ms: message.commit_ms, batch_size, enqueued, trouble: message.trouble });
      for (const done of message.batches) this.#settle(done);
      if (message.added?.length === 0) return;
      this.#on_committed(message.added);
      this.#next_commit.resolve(message.added);
      this.#next_commit = Promise.withResolvers();
      this.#is_commit_awaited = false;
    } else if (message.kind === 'answer') {
      this.#counts = message.counts;
      const call = this.#calls.get(message.call);
      this.#calls.delete(message.call);
      if (message.error === null) call?.resolve(message.output);
      else call?.reject(new ApiError('outbox_unavailable', undefined, { reason: message.error }));
    }
  }

  #enqueued({ batch, results }: BatchDone): string[] {
    const appends = this.#batches.get(batch)?.message.appends ?? [];
    return results.flatMap(({ outcome }, i) =>
      outcome === 'committed' ? (appends[i]?.drafts ?? []).map(({ event_type }) => event_type) : [],
    );
  }

  #settle(done: BatchDone): void {
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
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(within_ms, () => {
        this.#calls.delete(call);
        reject(new ApiError('outbox_unavailable'));
      });
      this.#calls.set(call, {
        resolve: (output) => {
          timer.cancel();
          resolve(output as Calls[Name]['out']);
        },
        reject: (error) => {
          timer.cancel();
          reject(error);
        },
      });
      this.#host.post({ kind: 'call', call, name, input } as Call);
    });
  }

  async adopt(owner: Ownership): Promise<Adoption> {
    const adoption = await this.#call('adopt', owner);
    // Not before: whoever takes the files over writes their log back, and damage is kept as it was found.
    if (this.#counts.pending > 0) this.#host.moveToThread();
    return adoption;
  }

  untried(after_id: number, limit: number): Promise<{ records: DueRecord[]; more: boolean }> {
    return this.#call('untried', { after_id, limit });
  }

  due(limit: number): Promise<{ records: DueRecord[]; next_due_ms: number | null }> {
    return this.#call('due', { limit });
  }

  overdue(limit: number): Promise<{ records: DueRecord[]; next_deadline_ms: number | null }> {
    return this.#call('overdue', { limit });
  }

  probeCandidate(held: number[]): Promise<DueRecord | null> {
    return this.#call('probeCandidate', { held });
  }

  /** In parts: those who publish come in between. */
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

  find(event_id: string): Promise<DeliveryDetail | null> {
    return this.#call('find', { event_id });
  }

  replay(event_id: string): Promise<boolean> {
    return this.#call('replay', { event_id });
  }

  /** In parts: those who publish come in between. What ends in that state meanwhile is left as it is. */
  async replayAll(state: 'failed' | 'expired' | 'delivered'): Promise<number> {
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

  tree(after_id: number, limit: number): Promise<{ id: number; entry: string }[]> {
    return this.#call('tree', { after_id, limit });
  }

  /** Whether anything was kept long enough. */
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
    for (const call of this.#calls.values()) call.reject(new ApiError('outbox_unavailable'));
    this.#on_fault(error as Error);
  }
}
