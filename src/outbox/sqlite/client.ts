import type { Clock } from '../../base/clock.ts';
import type { OutboxCounts } from '../../contract/deliveries.ts';
import { ApiError, StartError } from '../../contract/errors.ts';
import type {
  Adoption,
  Append,
  AppendResult,
  AttemptOutcome,
  DeliveryStore,
  DueRecord,
  InspectionStore,
  RecordsAddedListener,
} from '../store.ts';
import { ClientBatches } from './client-batches.ts';
import { ClientCalls } from './client-calls.ts';
import type { CallName, FromWriter, Mended, WriterCall, WriterSettings } from './messages.ts';
import { OutboxThread } from './outbox-thread.ts';
import type { Ownership } from './rows/outbox-state.ts';

/** Calls of a start without backlog: cheap enough to be answered in the main thread. */
const CALLS_OF_A_START = new Set<CallName>([
  'adopt',
  'untried',
  'due',
  'overdue',
  'probeCandidate',
  'isPruneDue',
  'lastSequence',
  'lifecycle',
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
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | open | `open` | `close`; the writer's death |
 * | stuck: appends are refused at once, because nothing more may queue up | an append that is not answered in time | any answer |
 * | closed: appends are refused, outcomes never recorded, calls rejected | `close`; the writer's death | – |
 *
 * Where the writer runs meanwhile is `OutboxThread`'s matter.
 */
export class OutboxClient extends ClientCalls implements DeliveryStore, InspectionStore {
  readonly #thread: OutboxThread;
  readonly #batches: ClientBatches;
  readonly #clock: Clock;
  readonly #onFault: (error: Error) => void;
  #offset_ms = 0;
  #counts: OutboxCounts = { pending: 0, delivered: 0, failed: 0, expired: 0, foreign: 0, bytes: 0 };
  #wanted: () => boolean = () => false;
  #onRecordsAdded: RecordsAddedListener = () => {};
  #onCommitMeasured: (report: CommitReport) => void = () => {};
  #onMended: (mended: Mended) => void = () => {};
  #next_commit = Promise.withResolvers<DueRecord[] | null>();
  #is_commit_awaited = false;
  #sandbox_id: string | null = null;
  #is_closed = false;

  private constructor(settings: WriterSettings, clock: Clock, onFault: (error: Error) => void) {
    super(clock);
    this.#thread = new OutboxThread(settings, clock, {
      onMessage: (message) => this.#receive(message),
      onFault: (error) => this.#fail(error),
    });
    this.#batches = new ClientBatches({
      clock,
      post: (batch) => this.#thread.post(batch),
      wantsRecords: () => this.#is_commit_awaited || this.#wanted(),
    });
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /**
   * Opens the outbox, in a writer thread or, with `begins_here`, in this thread until there is more to do than a start
   * asks for. Throws StartError where it cannot be used, and `outbox_unavailable` where that may pass. `onFault`: the
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
    if (opened.kind === 'salvage_due') opened = await store.#thread.openInThread();
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
  onRecordsAdded(wanted: () => boolean, listener: RecordsAddedListener): void {
    this.#wanted = wanted;
    this.#onRecordsAdded = listener;
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
  nextCommit(): Promise<DueRecord[] | null> {
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
    if (append.tree || append.drafts.some(({ event_type }) => event_type !== 'sandbox.ready')) {
      this.#thread.moveToThread();
    }
    return this.#batches.append(append);
  }

  /** See `DeliveryStore.record`. */
  record(outcome: AttemptOutcome): Promise<void> {
    if (this.#is_closed) return new Promise(() => {});
    if (outcome.decision.state !== 'delivered') this.#thread.moveToThread();
    return this.#batches.record(outcome);
  }

  #receive(message: FromWriter): void {
    this.#batches.noteAnswer();
    if (message.kind === 'mended') this.#onMended(message);
    if (message.kind === 'done') this.#committed(message);
    if (message.kind !== 'answer') return;
    this.#counts = message.counts;
    this.answer(message);
  }

  #committed({ batches, counts, added, trouble, commit_ms }: Extract<FromWriter, { kind: 'done' }>): void {
    this.#counts = counts ?? this.#counts;
    const batch_size = batches.reduce((sum, { results }) => sum + results.length, 0);
    const enqueued = batches.flatMap((done) => this.#batches.addedTypes(done));
    this.#onCommitMeasured({ commit_ms, batch_size, enqueued, trouble });
    for (const done of batches) this.#batches.resolve(done);
    if (added?.length === 0) return;
    this.#onRecordsAdded(added);
    this.#next_commit.resolve(added);
    this.#next_commit = Promise.withResolvers();
    this.#is_commit_awaited = false;
  }

  protected override post(call: WriterCall): void {
    if (this.#is_closed) throw new ApiError('outbox_unavailable');
    if (!CALLS_OF_A_START.has(call.name)) this.#thread.moveToThread();
    this.#thread.post(call);
  }

  /** Makes the outbox this sandbox's. Rejects with `outbox_unavailable`. */
  async adopt(owner: Ownership): Promise<Adoption> {
    const adoption = await this.call('adopt', owner);
    // Not before: the move writes the log back, and `adopt` may have to keep damaged files as it found them.
    if (this.#counts.pending > 0) this.#thread.moveToThread();
    return adoption;
  }

  /** Writes back, closes the files and ends the thread. Idempotent. */
  async close(): Promise<void> {
    if (this.#is_closed) return;
    while (this.#batches.flush());
    const closed = this.call('close', null);
    this.#is_closed = true;
    await closed.catch(() => {});
    await this.#thread.end();
  }

  #fail(error: unknown): void {
    if (this.#is_closed) return;
    this.#is_closed = true;
    this.#batches.giveUpAll();
    this.rejectAll();
    this.#onFault(error as Error);
  }
}
