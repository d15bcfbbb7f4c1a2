import type { Clock } from '../../base/clock.ts';
import type { Append, AppendResult, AttemptOutcome, DueRecord } from '../store.ts';
import type { OutboxFiles } from './files/outbox-files.ts';
import { DirectoryTakenError } from './files/state-lock.ts';
import { Maintenance, PRUNE_ROWS, VACUUM_LOG_BYTES, VACUUM_PAGES } from './maintenance.ts';
import type {
  Batch,
  BatchDone,
  CallName,
  Calls,
  FromWriter,
  ToWriter,
  WriterCall,
  WriterState,
} from './protocol.ts';
import { Inspection } from './rows/inspection.ts';
import type { OutboxLimits } from './rows/outbox-state.ts';
import { SqliteStore } from './rows/sqlite-store.ts';
import { salvage } from './salvage/salvage.ts';
import { troubleOf } from './store-errors.ts';

/** The log is written back when about this much was added and nothing waits: that takes a short moment. */
const WRITE_BACK_BYTES = 1024 * 1024;
/** The log is written back at this size, whatever waits. */
const WRITE_BACK_AT_LATEST_BYTES = 4 * 1024 * 1024;
/** Early writing back may take 1 / 25 of the time: with slow syncs or many commits, few and long ones cost less. */
const WRITE_BACK_SHARE = 25;
/** The longest pause until the next early one: a slow one may have been delayed by something else. */
const WRITE_BACK_PAUSE_MAX_MS = 1_000;
/** What each commit adds to the log, and each row beside its texts: several share a page. */
const COMMIT_LOG_BYTES = 24 * 1024;
const ROW_LOG_BYTES = 1024;
/** For this long after a record was added, free pages are left for the next ones. */
const GROWING_MS = 5_000;

/** The least time between two databases that are set aside: a disk that damages everything must not be filled up. */
const SET_ASIDE_INTERVAL_MS = 60_000;

/** What a writer works with. */
export interface WriterParts {
  files: OutboxFiles;
  limits: OutboxLimits;
  clock: Clock;
  reply: (message: FromWriter) => void;
  /** State of the previous writer in this process. */
  previous?: WriterState | null;
}

/**
 * Group commit: all that waits is written in one transaction, shares one sync and is answered after it.
 * Outcomes that could not be kept wait here and go with a later commit; appends are refused instead.
 *
 * What a log holds that this process did not sync itself, after a start or a failed commit, may exist in the page
 * cache alone, and what is added behind it would be lost with it. So it is written back, and synced, before the next
 * commit.
 */
export class Writer {
  readonly #files: OutboxFiles;
  readonly #limits: OutboxLimits;
  readonly #clock: Clock;
  readonly #reply: (message: FromWriter) => void;
  #store: SqliteStore;
  #inspection: Inspection;
  #unrecorded: { batch: number; outcomes: AttemptOutcome[] }[] = [];
  #log_bytes = 0;
  /** When the log may be written back early again, in monotonic ms. */
  #early_from_ms = Number.NEGATIVE_INFINITY;
  #is_log_doubtful = true;
  #set_aside_ms = Number.NEGATIVE_INFINITY;
  /** When a record was added last. */
  #added_ms = Number.NEGATIVE_INFINITY;
  /** How many records were pending in the damaged databases that are to be taken over. */
  #expected_pending = 0;
  /** Acknowledged records that were pending and could not be taken over at the start. */
  #lost_at_start = 0;

  constructor({ files, limits, clock, reply, previous }: WriterParts) {
    this.#files = files;
    this.#limits = limits;
    this.#clock = clock;
    this.#reply = reply;
    if (files.is_salvage_due) this.#expected_pending = files.continueDamaged();
    this.#store = new SqliteStore(files.db, clock, limits, undefined, previous?.offset_ms);
    this.#inspection = this.#inspect();
    if (previous?.owner) this.#adopt(previous.owner);
    const { offset_ms, sandbox_id } = this.#store;
    reply({ kind: 'opened', offset_ms, counts: this.#store.counts(), sandbox_id });
  }

  /** True while outcomes wait for a disk that works: call `handle([])` again after a while. */
  get has_unrecorded(): boolean {
    return this.#unrecorded.length > 0;
  }

  /** Handles everything that waits: one commit for all writes, then the calls, then a due checkpoint. Never throws. */
  handle(messages: ToWriter[]): void {
    const batches = messages.filter((message): message is Batch => message.kind === 'batch');
    if (batches.length > 0 || this.#unrecorded.length > 0) this.#commit(batches);
    for (const message of messages) if (message.kind === 'call') this.#answer(message);
    if (this.#log_bytes > WRITE_BACK_AT_LATEST_BYTES) this.#checkpoint('PASSIVE');
  }

  /** Whether `writeBack` has something to do. A doubtful log is written back by the next commit. */
  get is_write_back_due(): boolean {
    if (this.#log_bytes <= WRITE_BACK_BYTES || this.#is_log_doubtful) return false;
    return this.#clock.monotonicMs() >= this.#early_from_ms;
  }

  /** Writes the log back early. Call it when nothing waits: messages that arrive meanwhile wait for it. */
  writeBack(): void {
    if (!this.is_write_back_due) return;
    const began_ms = this.#clock.monotonicMs();
    this.#checkpoint('PASSIVE');
    try {
      // The first commit to an emptied log needs one more sync: this one, which no caller waits for.
      this.#write(() => {}, 0);
    } catch (error) {
      this.#undo(error);
    }
    const ended_ms = this.#clock.monotonicMs();
    const pause_ms = Math.min((ended_ms - began_ms) * WRITE_BACK_SHARE, WRITE_BACK_PAUSE_MAX_MS);
    this.#early_from_ms = ended_ms + pause_ms;
  }

  /**
   * Closes the files for the next writer in this process and returns its state. Throws while the disk fails; then this
   * writer stays in use.
   */
  detach(): WriterState {
    try {
      // A commit finds out whether the disk works, and puts files in place that were removed meanwhile.
      this.#write(() => {});
    } catch (error) {
      this.#undo(error);
      throw error;
    }
    if (this.has_unrecorded) throw new Error('outcomes wait for the disk');
    this.#checkpoint('TRUNCATE');
    this.#files.close();
    return { owner: this.#store.owner, offset_ms: this.#store.offset_ms };
  }

  #commit(batches: Batch[]): void {
    const started_ms = performance.now();
    const waiting = this.#unrecorded;
    try {
      this.#begin(batches.reduce((sum, { appends }) => sum + draftsIn(appends), 0));
      for (const { outcomes } of waiting)
        for (const outcome of outcomes) this.#store.outcomes.record(outcome);
      const done = batches.map((batch) => this.#apply(batch));
      const added = this.#end();
      this.#unrecorded = [];
      const late = waiting.map(({ batch }): BatchDone => ({ batch, results: [], is_recorded: true }));
      this.#done(
        [...late, ...done],
        added.length === 0 || batches.at(-1)?.wants_records ? added : null,
        null,
        started_ms,
      );
      const rows = batches.reduce((sum, { outcomes, appends }) => sum + outcomes.length + appends.length, 0);
      const bytes = added.reduce((sum, { body }) => sum + body.length, 0);
      if (added.length > 0) this.#added_ms = this.#clock.monotonicMs();
      this.#log_bytes += COMMIT_LOG_BYTES + rows * ROW_LOG_BYTES + bytes;
    } catch (error) {
      this.#undo(error);
      const lost = batches.filter(({ outcomes }) => outcomes.length > 0);
      this.#unrecorded = [...waiting, ...lost.map(({ batch, outcomes }) => ({ batch, outcomes }))];
      this.#done(batches.map(refused), [], (error as Error).message, started_ms);
    }
  }

  #begin(drafts = 0): void {
    this.#mend();
    this.#syncLog();
    this.#store.begin(drafts);
  }

  #syncLog(): void {
    if (this.#is_log_doubtful) this.#files.db.pragma('wal_checkpoint(TRUNCATE)');
    this.#is_log_doubtful = false;
  }

  /** Opens a new database where a damaged one was set aside, and takes over all that can be read of that. */
  #mend(): void {
    if (!this.#files.db.open) {
      this.#files.open();
      this.#useNewDatabase();
    }
    if (!this.#files.is_salvage_due) return;
    const is_start = this.#store.owner === null;
    this.#syncLog();
    this.#store.begin();
    const time = { wall_ms: this.#clock.wallMs(), window_ms: this.#limits.window_ms };
    const taken = salvage(this.#files.damaged(), this.#store.taken_over, time);
    this.#files.noteSalvaged();
    this.#store.commit();
    const set_aside = this.#files.salvaged();
    this.#log_bytes = WRITE_BACK_AT_LATEST_BYTES;
    const lost_records = Math.max(0, this.#expected_pending - taken);
    if (is_start) this.#lost_at_start = lost_records;
    else this.#reply({ kind: 'mended', how: 'replaced', lost_records, set_aside });
  }

  /** Makes everything since `#begin` durable, under the names that a restart looks at. */
  #end(): DueRecord[] {
    const added = this.#store.commit();
    if (!this.#files.areInPlace()) {
      this.#files.restore();
      this.#useNewDatabase();
      this.#openMark();
      this.#reply({ kind: 'mended', how: 'restored', lost_records: 0, set_aside: null });
    }
    this.#files.high_water.write(this.#store.next_sequence - 1, this.#store.counts().pending);
    return added;
  }

  /** Rolls back a change that failed, and handles the reason: a damaged database, or another owner. */
  #undo(error: unknown): void {
    this.#is_log_doubtful = true;
    if (this.#files.db.open) this.#store.rollback();
    if (troubleOf(error) === 'damage') this.#setAsideDamaged();
    if (error instanceof DirectoryTakenError) this.#reply({ kind: 'fault', message: error.message });
  }

  #setAsideDamaged(): void {
    const now_ms = this.#clock.monotonicMs();
    if (now_ms - this.#set_aside_ms < SET_ASIDE_INTERVAL_MS) return;
    this.#set_aside_ms = now_ms;
    try {
      this.#files.setAside();
      this.#expected_pending = this.#store.counts().pending;
    } catch {
      // A disk that refuses this, too, has trouble: SQLite also calls damage what cannot be read at present.
    }
  }

  #useNewDatabase(): void {
    const { db } = this.#files;
    this.#store = new SqliteStore(db, this.#clock, this.#limits, this.#store);
    this.#inspection = this.#inspect();
    this.#is_log_doubtful = true;
  }

  #inspect(): Inspection {
    return new Inspection(this.#files.db, this.#clock, () => this.#store);
  }

  #apply({ batch, appends, outcomes }: Batch): BatchDone {
    for (const outcome of outcomes) this.#store.outcomes.record(outcome);
    return { batch, results: appends.map((append) => this.#store.added.append(append)), is_recorded: true };
  }

  #done(batches: BatchDone[], added: DueRecord[] | null, trouble: string | null, started_ms: number): void {
    const commit_ms = performance.now() - started_ms;
    this.#reply({ kind: 'done', batches, counts: this.#store.counts(), added, trouble, commit_ms });
  }

  #answer(call: WriterCall): void {
    let output: unknown = null;
    let error: string | null = null;
    try {
      this.#mend();
      output = this.#call(call);
      if (this.#store.backlog.has_unsendable) this.#failUnsendable();
    } catch (thrown) {
      this.#undo(thrown);
      error = (thrown as Error).message;
    }
    this.#reply({ kind: 'answer', call: call.call, counts: this.#store.counts(), output, error });
  }

  #failUnsendable(): void {
    const { damaged, forged } = this.#write(() => this.#store.backlog.failUnsendable());
    const set_aside = null;
    if (damaged > 0) this.#reply({ kind: 'mended', how: 'failed', lost_records: damaged, set_aside });
    if (forged > 0) this.#reply({ kind: 'mended', how: 'forged', lost_records: forged, set_aside });
  }

  #call(call: WriterCall): Calls[CallName]['out'] {
    switch (call.name) {
      case 'adopt':
        return this.#adopt(call.input);
      case 'untried':
        return this.#store.backlog.untried(call.input.after_id, call.input.limit);
      case 'due':
        return this.#store.backlog.due(call.input.limit);
      case 'overdue':
        return this.#store.backlog.overdue(call.input.limit);
      case 'probeCandidate':
        return this.#store.backlog.probeCandidate(call.input.in_flight);
      case 'list':
        return this.#inspection.list(call.input);
      case 'find':
        return this.#inspection.find(call.input.event_id);
      case 'replay':
        return this.#write(() => this.#store.finished.replay(call.input.event_id));
      case 'replaySome':
        return this.#replaySome(call.input);
      case 'after':
        return this.#inspection.after(call.input.sequence, call.input.limit);
      case 'lastSequence':
        return this.#store.next_sequence - 1;
      case 'oldestPending':
        return this.#store.backlog.oldestPending();
      case 'tree':
        return this.#store.tree(call.input.after_id, call.input.limit);
      case 'isPruneDue':
        return this.#maintenance().isDue();
      case 'prune':
        return this.#prune();
      case 'checkpoint':
        this.#checkpoint('TRUNCATE');
        return null;
      case 'copyTo':
        this.#files.copyTo(call.input.path);
        return null;
      case 'close':
        this.#checkpoint('TRUNCATE');
        this.#files.close();
        return null;
    }
  }

  #adopt(owner: Calls['adopt']['in']): Calls['adopt']['out'] {
    const { sandbox_id: earlier } = this.#store;
    const mark = this.#files.high_water.read();
    const is_ours = mark?.sandbox_id === owner.sandbox_id;
    // What was found belongs to this sandbox, or was lost as a whole.
    const acknowledged = is_ours && (earlier === null || earlier === owner.sandbox_id) ? mark.sequence : 0;
    const missing_records = Math.max(0, acknowledged - (this.#store.next_sequence - 1));
    if (missing_records > 0 && earlier !== null) {
      this.#files.keepAsFound();
      this.#useNewDatabase();
    }
    this.#write(() => {
      this.#store.adopt(owner);
      this.#store.skipSequence(acknowledged);
    });
    this.#openMark();
    const { foreign: foreign_records } = this.#store.counts();
    return {
      was_ready: this.#store.is_ready,
      missing_records: Math.max(missing_records, this.#lost_at_start),
      lost_records: this.#lost_at_start || Math.min(missing_records, mark?.pending ?? 0),
      set_aside: this.#files.set_aside,
      foreign_records,
      foreign_pending: this.#store.foreignPending(),
    };
  }

  #openMark(): void {
    const { sandbox_id, next_sequence } = this.#store;
    const { pending } = this.#store.counts();
    this.#files.high_water.open({ sandbox_id: sandbox_id ?? '', sequence: next_sequence - 1, pending });
  }

  #replaySome({ state, limit }: Calls['replaySome']['in']): number {
    const event_ids = this.#store.finished.idsIn(state, limit);
    if (event_ids.length === 0) return 0;
    this.#write(() => {
      for (const event_id of event_ids) this.#store.finished.replay(event_id);
    }, event_ids.length);
    return event_ids.length;
  }

  /** Removes what was kept long enough and gives its space back, a part at a time. Source: contract section 3. */
  #prune(): { more: boolean } {
    const is_removal_due = this.#maintenance().isRemovalDue();
    const removed = is_removal_due ? this.#write(() => this.#maintenance().remove(), PRUNE_ROWS) : 0;
    const surplus_pages = this.#maintenance().surplusPages();
    if (surplus_pages > 0) {
      this.#maintenance().giveBack(surplus_pages);
      this.#log_bytes += VACUUM_LOG_BYTES;
    }
    const is_rest_due = removed > 0 && this.#maintenance().isRemovalDue();
    const more = is_rest_due || surplus_pages > VACUUM_PAGES;
    // The file becomes shorter when the log is written back.
    if (surplus_pages > 0 && !more) this.#checkpoint('PASSIVE');
    return { more };
  }

  /** Of the store and the database as they are now: both change when files are repaired. */
  #maintenance(): Maintenance {
    const is_growing = this.#clock.monotonicMs() - this.#added_ms < GROWING_MS;
    return new Maintenance(this.#files.db, this.#store.finished, this.#limits, is_growing);
  }

  #write<Result>(change: () => Result, rows = 1): Result {
    this.#begin();
    const result = change();
    this.#end();
    this.#log_bytes += COMMIT_LOG_BYTES + rows * ROW_LOG_BYTES;
    return result;
  }

  #checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): void {
    this.#log_bytes = 0;
    try {
      this.#files.db.pragma(`wal_checkpoint(${mode})`);
    } catch (error) {
      // The log keeps everything; the next commit that needs the disk tells the trouble.
      if (troubleOf(error) === 'damage') this.#undo(error);
    }
  }
}

function draftsIn(appends: Append[]): number {
  return appends.reduce((sum, { drafts }) => sum + drafts.length, 0);
}

function refused({ batch, appends, outcomes }: Batch): BatchDone {
  const results = appends.map((): AppendResult => ({ outcome: 'unavailable' }));
  return { batch, results, is_recorded: outcomes.length === 0 };
}
