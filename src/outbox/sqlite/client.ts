import { type Clock, runTime, type Timer } from '../../base/clock.ts';
import { COMMIT_TIMEOUT_MS } from '../../contract/defaults.ts';
import type { DeliveryDetail, DeliveryPage, OutboxCounts } from '../../contract/deliveries.ts';
import { ApiError, StartError } from '../../contract/errors.ts';
import type { FinalState, UndeliveredState } from '../../contract/words.ts';
import type {
  Adoption,
  Append,
  AppendResult,
  AttemptOutcome,
  DeliveryFilter,
  DeliveryStore,
  Discarded,
  InspectionStore,
  LoadedRecord,
  RecordsListener,
  StreamRecord,
} from '../store.ts';
import { ClientBatches } from './client-batches.ts';
import type { CommitReport } from './commit-report.ts';
import { LastAnswer } from './last-answer.ts';
import type { CallName, Calls, FromWriter, Mended, WriterCall, WriterSettings } from './messages.ts';
import { OutboxThread, READING_CALLS } from './outbox-thread.ts';
import type { LifecycleRow } from './rows/lifecycle-records.ts';
import type { Ownership } from './rows/outbox-state.ts';
import { StartAppends } from './start-appends.ts';

/** Records that are replayed or discarded in one commit. */
const CHANGED_AT_ONCE = 500;
/** How long a copy of the whole database may take. */
const COPY_TIMEOUT_MS = 60_000;

/** Calls of a start without backlog. */
const CALLS_OF_A_START = new Set<CallName>([...READING_CALLS, 'adopt', 'close']);

const NOBODY: RecordsListener = { hasRoom: () => false, onAdded: () => {} };

interface PendingCall {
  timer: Timer;
  resolve: (output: unknown) => void;
  reject: (error: Error) => void;
}

/**
 * The outbox as the daemon's main thread sees it. The appends and outcomes of one turn of the event loop go to the
 * writer as one message; an append that is not answered in time gets `unavailable`, and may still be kept. Everything
 * else is a call, which the writer answers by itself; it rejects with `outbox_unavailable` without an answer in time.
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | open | `open` | `close`; the writer's death |
 * | stuck: appends are refused at once, because nothing more may queue up | an append that is not answered in time | any answer |
 * | closed: appends are refused, outcomes never recorded, calls rejected | `close`; the writer's death | – |
 *
 * Where the writer runs meanwhile is `OutboxThread`'s matter.
 */
export class OutboxClient implements DeliveryStore, InspectionStore {
  readonly #thread: OutboxThread;
  readonly #batches: ClientBatches;
  readonly #start_appends = new StartAppends();
  readonly #clock: Clock;
  readonly #onFault: (error: Error) => void;
  #offset_ms = 0;
  #counts: OutboxCounts = { pending: 0, delivered: 0, failed: 0, expired: 0, foreign: 0, bytes: 0 };
  #listener: RecordsListener = NOBODY;
  #onCommitMeasured: (report: CommitReport) => void = () => {};
  #onMended: (mended: Mended) => void = () => {};
  #next_commit = Promise.withResolvers<LoadedRecord[] | null>();
  #is_commit_awaited = false;
  #sandbox_id: string | null = null;
  #is_closed = false;
  #last_call = 0;
  /** Calls without an answer, each with a deadline of its own. */
  readonly #calls = new Map<number, PendingCall>();
  readonly #oldest_pending: LastAnswer<number | null>;

  private constructor(settings: WriterSettings, clock: Clock, onFault: (error: Error) => void) {
    this.#thread = new OutboxThread(settings, clock, {
      onMessage: (message) => this.#receive(message),
      onFault: (error) => this.#fail(error),
    });
    this.#batches = new ClientBatches({
      clock,
      post: (batch) => this.#thread.post(batch),
      wantsRecords: () => this.#is_commit_awaited || this.#listener.hasRoom(),
    });
    this.#clock = clock;
    this.#oldest_pending = new LastAnswer(clock, () => this.#call('oldestPending', null), null);
    this.#onFault = onFault;
  }

  /**
   * Opens the outbox, in a writer thread or, with `begins_here` and if it is small, in this thread until there is more to do
   * than a start asks for. Throws StartError where it cannot be used, and `outbox_unavailable` where that may pass. `onFault`: the
   * writer died, and nothing is kept from then on.
   */
  static async open(
    settings: WriterSettings,
    clock: Clock,
    onFault: (error: Error) => void,
    begins_here = false,
  ): Promise<OutboxClient> {
    const store = new OutboxClient(settings, clock, onFault);
    let opened = begins_here ? store.#thread.openHere() : await store.#thread.openInThread();
    if (opened.kind === 'thread_due') opened = await store.#thread.openInThread();
    if (opened.kind !== 'opened') {
      store.#is_closed = true;
      await store.#thread.end();
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
    return this.#thread.is_in_thread;
  }

  /** Resolves when the thread has the files, or cannot be started for now; never where no move was begun. */
  get moved(): Promise<void> {
    return this.#thread.moved;
  }

  /** See `DeliveryStore.onRecordsAdded`. */
  onRecordsAdded(listener: RecordsListener): void {
    this.#listener = listener;
  }

  /** Calls `listener` after every commit that was tried. */
  onCommitMeasured(listener: (report: CommitReport) => void): void {
    this.#onCommitMeasured = listener;
  }

  /** Calls `listener` when the writer has repaired something that was damaged or removed. */
  onMended(listener: (mended: Mended) => void): void {
    this.#onMended = listener;
  }

  /** Resolves to the records that the next commit adds; null where they must be read. */
  nextCommit(): Promise<LoadedRecord[] | null> {
    this.#is_commit_awaited = true;
    return this.#next_commit.promise;
  }

  /** See `ClientBatches.paceAppends`. */
  paceAppends(pace: (waiting: number) => number): void {
    this.#batches.paceAppends(pace);
  }

  /** How long the oldest append has waited for its answer, in ms; 0 where none waits. */
  waitingMs(): number {
    return this.#batches.waitingMs();
  }

  /** Commits an append. Never rejects: see `AppendResult`. */
  append(append: Append): Promise<AppendResult> {
    // While the disk hangs, nothing more may queue up.
    if (this.#is_closed || this.#batches.is_stuck) return Promise.resolve({ outcome: 'unavailable' });
    if (!this.#start_appends.includes(append)) this.#thread.moveToThread();
    return this.#batches.append(append);
  }

  /** See `DeliveryStore.load`. All that the writer reads for the dispatcher comes with its request. */
  load(record: LoadedRecord): LoadedRecord {
    return record;
  }

  /** See `DeliveryStore.record`. */
  record(outcome: AttemptOutcome): Promise<void> {
    if (this.#is_closed) return new Promise(() => {});
    if (outcome.decision.state !== 'delivered') this.#thread.moveToThread();
    return this.#batches.record(outcome);
  }

  /** Makes the outbox this sandbox's. Rejects with `outbox_unavailable`. */
  async adopt(owner: Ownership): Promise<Adoption> {
    const adoption = await this.#call('adopt', owner);
    // Not before: the move writes the log back, and `adopt` may have to keep damaged files as it found them.
    if (this.#counts.pending > 0) this.#thread.moveToThread();
    return adoption;
  }

  /** See `DeliveryStore.untried`. */
  untried(after_id: number, limit: number): Promise<{ records: LoadedRecord[]; more: boolean }> {
    return this.#call('untried', { after_id, limit });
  }

  /** See `DeliveryStore.due`. */
  due(limit: number): Promise<{ records: LoadedRecord[]; next_due_ms: number | null }> {
    return this.#call('due', { limit });
  }

  /** See `DeliveryStore.overdue`. */
  overdue(limit: number): Promise<{ records: LoadedRecord[]; next_deadline_ms: number | null }> {
    return this.#call('overdue', { limit });
  }

  /** See `DeliveryStore.probeCandidate`. */
  probeCandidate(in_flight: number[]): Promise<LoadedRecord | null> {
    return this.#call('probeCandidate', { in_flight });
  }

  /** One page of deliveries, read in parts so that publishes are committed in between. */
  async list(filter: DeliveryFilter): Promise<DeliveryPage> {
    const deliveries: DeliveryPage['deliveries'] = [];
    let { before_id } = filter;
    for (let last_id: number | null = null; ; ) {
      const limit = filter.limit - deliveries.length;
      const part = await this.#call('list', { ...filter, before_id, limit });
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
  replayAll(state: FinalState): Promise<number> {
    return this.#inParts(this.#counts[state], (limit) => this.#call('replaySome', { state, limit }));
  }

  /** See `InspectionStore.discard`. */
  discard(event_id: string): Promise<Discarded> {
    return this.#call('discard', { event_id });
  }

  /** Removes every record in a state, in parts as `replayAll`; resolves to their number. */
  discardAll(state: UndeliveredState): Promise<number> {
    return this.#inParts(this.#counts[state], (limit) => this.#call('discardSome', { state, limit }));
  }

  async #inParts(all: number, change: (limit: number) => Promise<number>): Promise<number> {
    let changed = 0;
    while (changed < all) {
      const some = await change(Math.min(CHANGED_AT_ONCE, all - changed));
      if (some === 0) break;
      changed += some;
    }
    return changed;
  }

  /** See `InspectionStore.after`. */
  after(sequence: number, limit: number): Promise<StreamRecord[]> {
    return this.#call('after', { sequence, limit });
  }

  /** Up to `limit` of the sandbox's own `sandbox.*` records after a sequence, as they are stored, oldest first. */
  lifecycle(sequence: number, limit: number): Promise<LifecycleRow[]> {
    return this.#call('lifecycle', { sequence, limit });
  }

  /** The highest sequence that was given out; 0 before the first. */
  lastSequence(): Promise<number> {
    return this.#call('lastSequence', null);
  }

  /** Wall time of the oldest pending record's commit, or null; as last known while the disk does not answer. */
  oldestPending(): Promise<number | null> {
    return this.#oldest_pending.get();
  }

  /** Rows of the watched tree after an id, in order. */
  tree(after_id: number, limit: number): Promise<{ id: number; entry: string }[]> {
    return this.#call('tree', { after_id, limit });
  }

  /** Whether `prune` has something to remove or to give back. */
  isPruneDue(): Promise<boolean> {
    return this.#call('isPruneDue', null);
  }

  /** Removes some records past their retention; `more` if others are left. */
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
    while (this.#batches.flush());
    const closed = this.#call('close', null);
    this.#is_closed = true;
    await closed.catch(() => {});
    await this.#thread.end();
  }

  /** The writer's answer; `outbox_unavailable` without one after `within_ms`. */
  #call<Name extends CallName>(
    name: Name,
    input: Calls[Name]['in'],
    within_ms = COMMIT_TIMEOUT_MS,
  ): Promise<Calls[Name]['out']> {
    return new Promise((resolve, reject) => {
      if (this.#is_closed) throw new ApiError('outbox_unavailable');
      const call = ++this.#last_call;
      if (!CALLS_OF_A_START.has(name)) this.#thread.moveToThread();
      this.#thread.post({ kind: 'call', call, name, input } as WriterCall);
      const timer = runTime(this.#clock).after(within_ms, () => {
        this.#calls.delete(call);
        reject(new ApiError('outbox_unavailable'));
      });
      this.#calls.set(call, { timer, resolve: resolve as PendingCall['resolve'], reject });
    });
  }

  #receive(message: FromWriter): void {
    this.#batches.noteAnswer();
    if (message.kind === 'mended') this.#onMended(message);
    if (message.kind === 'done') this.#committed(message);
    if (message.kind !== 'answer') return;
    this.#counts = message.counts;
    this.#answered(message);
  }

  #committed(message: Extract<FromWriter, { kind: 'done' }>): void {
    const { batches, counts, added, dropped, trouble, commit_ms } = message;
    this.#counts = counts ?? this.#counts;
    const batch_size = batches.reduce((sum, { results }) => sum + results.length, 0);
    const enqueued = batches.flatMap((done) => this.#batches.addedTypes(done));
    this.#onCommitMeasured({ commit_ms, batch_size, enqueued, dropped, trouble });
    for (const done of batches) this.#batches.resolve(done);
    if (added?.length === 0) return;
    this.#listener.onAdded(added);
    this.#next_commit.resolve(added);
    this.#next_commit = Promise.withResolvers();
    this.#is_commit_awaited = false;
  }

  /** Passes the writer's answer on. A call that is no longer pending is ignored. */
  #answered({ call, output, error }: Extract<FromWriter, { kind: 'answer' }>): void {
    const pending = this.#calls.get(call);
    this.#calls.delete(call);
    pending?.timer.cancel();
    if (error === null) pending?.resolve(output);
    else pending?.reject(new ApiError('outbox_unavailable', undefined, { reason: error }));
  }

  #fail(error: unknown): void {
    if (this.#is_closed) return;
    this.#is_closed = true;
    this.#batches.giveUpAll();
    for (const { timer, reject } of this.#calls.values()) {
      timer.cancel();
      reject(new ApiError('outbox_unavailable'));
    }
    this.#onFault(error as Error);
  }
}
