import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import { StartError } from '../../contract/errors.ts';
import type { Append, AttemptOutcome } from '../store.ts';
import { OutboxFiles } from './files/outbox-files.ts';
import type { StateLock } from './files/state-lock.ts';
import { Maintenance } from './maintenance.ts';
import {
  type Batch,
  type BatchDone,
  type CallName,
  type Calls,
  type FromWriter,
  refusedBatch,
  type ToWriter,
  type WriterCall,
  type WriterSettings,
  type WriterState,
} from './messages.ts';
import { OpenOutbox, type WriterParts } from './open-outbox.ts';
import { READ_BYTES } from './rows/backlog.ts';
import type { SqliteStore } from './rows/sqlite-store.ts';

/** A commit that was tried, as the client is told of it. */
interface Commit extends Pick<Extract<FromWriter, { kind: 'done' }>, 'added' | 'trouble'> {
  started_ms: number;
}

/** The wait before outcomes that could not be recorded are retried. */
const RETRY_MS = 1_000;

/**
 * Group commit: everything that is waiting is written in one transaction with one sync and answered after it. Outcomes
 * that could not be stored wait here for a later commit; appends are refused instead.
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | all recorded | a commit | a commit that fails with outcomes in it |
 * | outcomes wait: tried again every second | a commit that failed | a commit |
 * | closed | the call `close` | – |
 * | left: nothing is done here any more | `leave` | `handle`, where there is no next writer for now |
 */
export class Writer {
  readonly #outbox: OpenOutbox;
  readonly #maintenance: Maintenance;
  readonly #clock: Clock;
  readonly #reply: (message: FromWriter) => void;
  #unrecorded: { batch: number; outcomes: AttemptOutcome[] }[] = [];
  #retry: Timer | null = null;
  #write_back: NodeJS.Immediate | null = null;

  /** Replies `opened`. Throws what keeps the outbox from being opened. */
  constructor(parts: WriterParts) {
    this.#clock = parts.clock;
    this.#reply = parts.reply;
    this.#outbox = new OpenOutbox(parts);
    this.#maintenance = new Maintenance(this.#outbox, parts.limits, parts.clock);
    const { offset_ms, sandbox_id } = this.#outbox.store;
    this.#reply({ kind: 'opened', offset_ms, counts: this.#outbox.counts(), sandbox_id });
  }

  /** True while outcomes wait for a disk that works. */
  get has_unrecorded(): boolean {
    return this.#unrecorded.length > 0;
  }

  /** Whether the log is written back as soon as nothing waits. */
  get is_write_back_due(): boolean {
    return this.#outbox.log.is_write_back_due;
  }

  /**
   * Handles everything that waits: one commit for all writes, then the calls, then a due checkpoint. What remains to be
   * done is scheduled. Never throws.
   */
  handle(messages: ToWriter[]): void {
    this.stop();
    const batches = messages.filter((message): message is Batch => message.kind === 'batch');
    if (batches.length > 0 || this.has_unrecorded) this.#commit(batches);
    for (const message of messages) if (message.kind === 'call') this.#answer(message);
    if (this.#outbox.log.is_full) this.#outbox.log.checkpoint('PASSIVE');
    if (this.has_unrecorded) this.#retry = this.#clock.after(RETRY_MS, () => this.handle([]));
    // After the messages that have arrived by then.
    if (this.is_write_back_due) this.#write_back = setImmediate(() => this.writeBack());
  }

  /** Cancels what is scheduled. `handle` schedules it again. */
  stop(): void {
    this.#retry?.cancel();
    this.#retry = null;
    if (this.#write_back) clearImmediate(this.#write_back);
    this.#write_back = null;
  }

  /** Writes the log back where that is due. Messages that arrive meanwhile wait for it. */
  writeBack(): void {
    this.#outbox.writeBack();
  }

  /** Stops, and leaves the files open for the next writer in this process. Touches no disk. */
  leave(): WriterState {
    this.stop();
    const { owner, offset_ms } = this.#outbox.store;
    return { owner, offset_ms, left: this.#outbox.files.leave() };
  }

  /** Outcomes that wait for a disk that works, as batches for the next writer. */
  unrecorded(): Batch[] {
    return this.#unrecorded.map(({ batch, outcomes }) => {
      return { kind: 'batch', batch, appends: [], outcomes, wants_records: false };
    });
  }

  #commit(batches: Batch[]): void {
    const started_ms = this.#clock.monotonicMs();
    const waiting = this.#unrecorded;
    try {
      this.#outbox.begin(batches.reduce((sum, { appends }) => sum + draftsIn(appends), 0));
      const { store } = this.#outbox;
      for (const { outcomes } of waiting) store.outcomes.record(outcomes);
      const done = batches.map((batch) => applied(store, batch));
      const added = this.#outbox.end();
      this.#unrecorded = [];
      const late = waiting.map(({ batch }): BatchDone => ({ batch, results: [], is_recorded: true }));
      const bytes = added.reduce((sum, { body_bytes }) => sum + body_bytes, 0);
      const is_wanted = batches.at(-1)?.wants_records && bytes <= READ_BYTES;
      const is_told = added.length === 0 || is_wanted;
      const told = is_told && !store.added.has_unsent ? added : null;
      this.#done([...late, ...done], { added: told, trouble: null, started_ms });
      const rows = batches.reduce((sum, { outcomes, appends }) => sum + outcomes.length + appends.length, 0);
      if (rows > 0) this.#maintenance.noteBusy();
      this.#outbox.log.noteCommit(rows, bytes);
    } catch (error) {
      this.#outbox.undo(error);
      const lost = batches.filter(({ outcomes }) => outcomes.length > 0);
      this.#unrecorded = [...waiting, ...lost.map(({ batch, outcomes }) => ({ batch, outcomes }))];
      const trouble = (error as Error).message;
      this.#done(batches.flatMap(refusedBatch), { added: [], trouble, started_ms });
    }
  }

  #done(batches: BatchDone[], { started_ms, ...commit }: Commit): void {
    const commit_ms = this.#clock.monotonicMs() - started_ms;
    const counts = this.#outbox.counts();
    const dropped = this.#outbox.store.takeDropped();
    this.#reply({ kind: 'done', batches, counts, dropped, commit_ms, ...commit });
  }

  #answer(call: WriterCall): void {
    let output: unknown = null;
    let error: string | null = null;
    try {
      this.#outbox.mend();
      output = this.#call(call);
      if (this.#outbox.store.backlog.has_unsendable) this.#failUnsendable();
    } catch (thrown) {
      this.#outbox.undo(thrown);
      error = (thrown as Error).message;
    }
    this.#reply({ kind: 'answer', call: call.call, counts: this.#outbox.counts(), output, error });
  }

  #failUnsendable(): void {
    const { damaged, forged } = this.#outbox.write(() => this.#outbox.store.backlog.failUnsendable());
    const set_aside = null;
    if (damaged > 0) this.#reply({ kind: 'mended', how: 'failed', lost_records: damaged, set_aside });
    if (forged > 0) this.#reply({ kind: 'mended', how: 'forged', lost_records: forged, set_aside });
  }

  #call(call: WriterCall): Calls[CallName]['out'] {
    const { store, inspection, log, files } = this.#outbox;
    switch (call.name) {
      case 'adopt':
        return this.#outbox.adopt(call.input);
      case 'untried':
        return store.backlog.untried(call.input.after_id, call.input.limit);
      case 'due':
        return store.backlog.due(call.input.limit);
      case 'overdue':
        return store.backlog.overdue(call.input.limit);
      case 'probeCandidate':
        return store.backlog.probeCandidate(call.input.in_flight);
      case 'list':
        return inspection.list(call.input);
      case 'find':
        return inspection.find(call.input.event_id);
      case 'replay':
        return this.#outbox.write(() => this.#outbox.store.finished.replay(call.input.event_id));
      case 'replaySome':
        return this.#replaySome(call.input);
      case 'discard':
        return this.#outbox.write(() => this.#outbox.store.finished.discard(call.input.event_id));
      case 'discardSome':
        return this.#discardSome(call.input);
      case 'after':
        return inspection.after(call.input.sequence, call.input.limit);
      case 'lifecycle':
        return store.lifecycle.after(call.input.sequence, call.input.limit);
      case 'lastSequence':
        return store.next_sequence - 1;
      case 'oldestPending':
        return store.backlog.oldestPending();
      case 'tree':
        return store.tree(call.input.after_id, call.input.limit);
      case 'isPruneDue':
        return this.#maintenance.isDue();
      case 'prune':
        return this.#maintenance.prune();
      case 'checkpoint':
        log.checkpoint('TRUNCATE');
        return null;
      case 'copyTo':
        files.copyTo(call.input.path);
        return null;
      case 'close':
        this.#outbox.close();
        return null;
    }
  }

  #replaySome({ state, limit }: Calls['replaySome']['in']): number {
    const event_ids = this.#outbox.store.finished.idsIn(state, limit);
    if (event_ids.length === 0) return 0;
    this.#outbox.write(() => {
      for (const event_id of event_ids) this.#outbox.store.finished.replay(event_id);
    }, event_ids.length);
    return event_ids.length;
  }

  #discardSome({ state, limit }: Calls['discardSome']['in']): number {
    return this.#outbox.write(() => this.#outbox.store.finished.discardSome(state, limit), limit);
  }
}

function draftsIn(appends: Append[]): number {
  return appends.reduce((sum, { drafts }) => sum + drafts.length, 0);
}

function applied(store: SqliteStore, { batch, appends, outcomes }: Batch): BatchDone {
  store.outcomes.record(outcomes);
  return { batch, results: appends.map((append) => store.added.append(append)), is_recorded: true };
}

/**
 * Opens the outbox's files for a writer. `lock` returns the lock, and takes it where it is not held. Null where the
 * files cannot be opened, or must be salvaged and this is not the writer thread; `reply` receives the reason.
 */
export function openWriter(
  settings: WriterSettings,
  reply: (message: FromWriter) => void,
  previous: WriterState | null,
  lock: () => StateLock,
  in_thread: boolean,
): Writer | null {
  try {
    return open(settings, reply, previous, lock(), in_thread);
  } catch (error) {
    const message = (error as Error).message;
    const where = error instanceof StartError ? '' : `state directory ${settings.state_dir}: `;
    // What was open a moment ago can be opened again, once the disk's trouble is over.
    const may_pass = previous === null ? mayPass(error) : !(error instanceof StartError);
    reply({ kind: 'refused', message: where + message, may_pass });
    return null;
  }
}

function open(
  { state_dir, limits }: WriterSettings,
  reply: (message: FromWriter) => void,
  previous: WriterState | null,
  lock: StateLock,
  in_thread: boolean,
): Writer | null {
  const files = new OutboxFiles(state_dir, systemClock, lock);
  try {
    if (files.is_salvage_due && !in_thread) {
      files.close();
      reply({ kind: 'thread_due' });
      return null;
    }
    return new Writer({ files, limits, clock: systemClock, reply, previous });
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Whether an error of a start may pass: no room, too many open files, or a disk that fails. */
function mayPass(error: unknown): boolean {
  const passing = /^(SQLITE_FULL|SQLITE_IOERR|SQLITE_NOMEM|ENOSPC|EDQUOT|EFBIG|EIO|EMFILE|ENFILE|ENOMEM)/;
  return passing.test((error as { code?: string }).code ?? '');
}
