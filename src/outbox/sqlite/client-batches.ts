import { type Clock, runTime, type Timer } from '../../base/clock.ts';
import { COMMIT_TIMEOUT_MS } from '../../contract/defaults.ts';
import type { Append, AppendResult, AttemptOutcome } from '../store.ts';
import type { Batch, BatchDone } from './messages.ts';

/** This many appends go to an idle writer at once, although more may come in this turn. */
const EARLY_APPENDS = 8;
/** Nobody waits for outcomes, so they wait for an append to share its commit, up to this number and this time. */
const WAITING_OUTCOMES = 128;
const OUTCOME_WAIT_MS = 5;

/** Appends and their bytes that one batch, which is one transaction, takes at most: the next ones wait in the next batch. */
const BATCH_APPENDS = 2_048;
const BATCH_BYTES = 8 * 1024 * 1024;

/** A batch that is being collected, or that the writer has not answered in full. */
interface PendingBatch {
  message: Batch;
  /** Run time since which the oldest of its appends has been waiting, in ms. */
  since_ms: number;
  /** One per append. */
  answer: ((result: AppendResult) => void)[];
  /** One per outcome. */
  recorded: (() => void)[];
  is_answered: boolean;
  /** It took too long: callers that wait for a prompt answer were given `unavailable`. */
  is_given_up: boolean;
}

/** What `ClientBatches` works with. */
export interface ClientBatchesParts {
  clock: Clock;
  /** Sends a batch to the writer. */
  post: (batch: Batch) => void;
  /** Whether a listener wants the records that the next commit adds. */
  wantsRecords: () => boolean;
}

/**
 * The client's appends and outcomes: all that one turn of the event loop asks for is one batch.
 *
 * | State of a batch | Entered by | Left by |
 * |---|---|---|
 * | collecting | the first append or outcome of a turn | the end of the turn, or `flush`: it is sent |
 * | sent | the writer has it | its answer; `COMMIT_TIMEOUT_MS` without one: it is given up |
 * | given up: its appends are `unavailable`, and may still be kept | that time | its answer |
 * | answered | the results of its appends | its outcomes are on disk: it is forgotten |
 */
export class ClientBatches {
  readonly #clock: Clock;
  readonly #run_time: Clock;
  readonly #post: (batch: Batch) => void;
  readonly #wantsRecords: () => boolean;
  #next: PendingBatch | null = null;
  #number = 0;
  /** Batches that the writer has not answered yet. */
  #under_way = 0;
  #is_flush_due = false;
  #outcome_timer: Timer | null = null;
  readonly #sent = new Map<number, PendingBatch>();
  #timer: Timer | null = null;
  #is_stuck = false;
  #pace: (waiting: number) => number = (waiting) => waiting;

  constructor({ clock, post, wantsRecords }: ClientBatchesParts) {
    this.#clock = clock;
    this.#run_time = runTime(clock);
    this.#post = post;
    this.#wantsRecords = wantsRecords;
  }

  /** An append was not answered in time, and nothing was since. */
  get is_stuck(): boolean {
    return this.#is_stuck;
  }

  /** `pace` returns how many of the waiting appends may be committed in this turn; the rest wait for the next. */
  paceAppends(pace: (waiting: number) => number): void {
    this.#pace = pace;
  }

  /** How long the oldest append has been waiting for its answer, in ms; 0 if none is waiting. */
  waitingMs(): number {
    if (this.#is_stuck) return COMMIT_TIMEOUT_MS;
    for (const { answer, since_ms, is_given_up } of this.#sent.values()) {
      if (answer.length > 0 && !is_given_up) return this.#run_time.monotonicMs() - since_ms;
    }
    return 0;
  }

  /** Resolves to the result of an append. Never rejects. */
  append(append: Append): Promise<AppendResult> {
    const batch = this.#collect();
    const { message, answer } = batch;
    if (answer.length === 0) batch.since_ms = this.#run_time.monotonicMs();
    message.appends.push(append);
    const answered = new Promise<AppendResult>((resolve) => answer.push(resolve));
    if (message.appends.length === EARLY_APPENDS && this.#under_way === 0) this.flush();
    else this.#flushSoon();
    return answered;
  }

  /** Resolves once an outcome is on stable storage. */
  record(outcome: AttemptOutcome): Promise<void> {
    const { message, recorded } = this.#collect();
    message.outcomes.push(outcome);
    // Waking the writer, and a sync, cost more than they do.
    if (message.outcomes.length === WAITING_OUTCOMES) this.#flushSoon();
    this.#outcome_timer ??= this.#clock.after(OUTCOME_WAIT_MS, () => this.flush());
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
      this.flush();
    });
  }

  /** Sends what is collected now, as far as the pace admits; returns whether there is a rest. */
  flush(): boolean {
    this.#outcome_timer?.cancel();
    this.#outcome_timer = null;
    const batch = this.#next;
    if (!batch) return false;
    this.#next = null;
    const { appends } = batch.message;
    const admitted = Math.min(fitting(appends), Math.max(1, this.#pace(appends.length)));
    if (admitted < appends.length) {
      const later = this.#collect();
      later.since_ms = batch.since_ms;
      later.message.appends = appends.splice(admitted);
      later.answer = batch.answer.splice(admitted);
      this.#flushSoon();
    }
    batch.message.wants_records = this.#wantsRecords();
    this.#sent.set(batch.message.batch, batch);
    this.#under_way += 1;
    this.#post(batch.message);
    this.#watch();
    return this.#next !== null;
  }

  /** One timer for the batch that has waited longest. */
  #watch(): void {
    if (this.#timer) return;
    for (const batch of this.#sent.values()) {
      if (batch.answer.length === 0 || batch.is_given_up) continue;
      const due_ms = batch.since_ms + COMMIT_TIMEOUT_MS - this.#run_time.monotonicMs();
      this.#timer = this.#run_time.after(due_ms, () => {
        this.#timer = null;
        this.#giveUp();
        this.#watch();
      });
      return;
    }
  }

  #giveUp(): void {
    const now_ms = this.#run_time.monotonicMs();
    for (const batch of this.#sent.values()) {
      if (now_ms - batch.since_ms < COMMIT_TIMEOUT_MS - 1) return;
      if (batch.is_given_up || batch.answer.length === 0) continue;
      this.#is_stuck = true;
      batch.is_given_up = true;
      batch.message.appends.forEach(({ tree }, i) => {
        if (!tree) batch.answer[i]?.({ outcome: 'unavailable' });
      });
    }
  }

  /** Notes that the writer has answered something: it is not stuck. */
  noteAnswer(): void {
    this.#is_stuck = false;
  }

  /** The types of the events that a batch has added. Call it before `resolve`. */
  addedTypes({ batch, results }: BatchDone): string[] {
    const appends = this.#sent.get(batch)?.message.appends ?? [];
    return results.flatMap(({ outcome }, i) =>
      outcome === 'committed' ? (appends[i]?.drafts ?? []).map(({ event_type }) => event_type) : [],
    );
  }

  /** Passes on the writer's results of a batch. */
  resolve(done: BatchDone): void {
    const batch = this.#sent.get(done.batch);
    if (!batch) return;
    if (!batch.is_answered) this.#under_way -= 1;
    batch.is_answered = true;
    done.results.forEach((result, i) => {
      batch.answer[i]?.(result);
    });
    batch.answer = [];
    if (!done.is_recorded) return;
    for (const recorded of batch.recorded) recorded();
    this.#sent.delete(done.batch);
    if (this.#sent.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** The writer is gone: every append that was sent is `unavailable`. */
  giveUpAll(): void {
    for (const batch of this.#sent.values()) {
      for (const answer of batch.answer) answer({ outcome: 'unavailable' });
    }
  }
}

/** How many of the appends a batch takes. */
function fitting(appends: readonly Append[]): number {
  let bytes = 0;
  for (const [i, { drafts }] of appends.entries()) {
    for (const { payload } of drafts) bytes += payload.length;
    if (i === BATCH_APPENDS || (bytes > BATCH_BYTES && i > 0)) return i;
  }
  return appends.length;
}

function newBatch(batch: number): PendingBatch {
  const message: Batch = { kind: 'batch', batch, appends: [], outcomes: [], wants_records: false };
  return { message, since_ms: 0, answer: [], recorded: [], is_answered: false, is_given_up: false };
}
