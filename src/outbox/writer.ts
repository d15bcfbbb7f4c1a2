import type { Database } from 'better-sqlite3';
import type { Clock } from '../base/clock.ts';
import { RETAIN_DELIVERED_MS, RETAIN_DELIVERED_RECORDS, RETAIN_FAILED_MS } from '../contract/defaults.ts';
import type { DeliveryState } from '../contract/deliveries.ts';
import type { HighWater } from './high-water.ts';
import { Inspection } from './inspection.ts';
import type { Batch, BatchDone, Call, CallName, Calls, FromWriter, ToWriter } from './protocol.ts';
import type { SqliteStore } from './sqlite-store.ts';
import type { AppendResult, AttemptOutcome, DueRecord } from './store.ts';

/** Written back to the database file after about so much was added to the log. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** A page of the log is written for most rows that change. */
const ROW_LOG_BYTES = 4096;
/** Removed in one transaction, so that publishes wait only shortly. */
const PRUNE_ROWS = 500;
const VACUUM_PAGES = 500;
/** How long, and how many at most, finished records are kept. */
const RETENTION: [state: DeliveryState, keep_ms: number, keep_records: number][] = [
  ['delivered', RETAIN_DELIVERED_MS, RETAIN_DELIVERED_RECORDS],
  ['failed', RETAIN_FAILED_MS, Number.POSITIVE_INFINITY],
  ['expired', RETAIN_FAILED_MS, Number.POSITIVE_INFINITY],
  ['foreign', RETAIN_FAILED_MS, Number.POSITIVE_INFINITY],
];
const REPLAY_ROWS = 500;

/** What a writer owns; `lock` is held as long as it is open. `set_aside`: where a damaged outbox went, or null. */
export interface OutboxFiles {
  db: Database;
  lock: Database;
  high_water: HighWater;
  set_aside: string | null;
}

/**
 * Group commit: all that waits is written in one transaction, shares one sync and is answered after it.
 * Outcomes that could not be kept wait here and go with a later commit; appends are refused instead.
 */
export class Writer {
  readonly #db: Database;
  readonly #store: SqliteStore;
  readonly #inspection: Inspection;
  readonly #files: OutboxFiles;
  readonly #reply: (message: FromWriter) => void;
  #unrecorded: { batch: number; outcomes: AttemptOutcome[] }[] = [];
  #log_bytes = 0;

  constructor(files: OutboxFiles, store: SqliteStore, clock: Clock, reply: (message: FromWriter) => void) {
    this.#files = files;
    this.#db = files.db;
    this.#store = store;
    this.#inspection = new Inspection(files.db, clock, () => store.now());
    this.#reply = reply;
  }

  /** True while outcomes wait for a disk that works: call `handle([])` again after a while. */
  get has_unrecorded(): boolean {
    return this.#unrecorded.length > 0;
  }

  /** Takes everything that waits: one commit for all that writes, then the questions, then housekeeping. */
  handle(messages: ToWriter[]): void {
    const batches = messages.filter((message): message is Batch => message.kind === 'batch');
    if (batches.length > 0 || this.#unrecorded.length > 0) this.#commit(batches);
    for (const message of messages) if (message.kind === 'call') this.#answer(message);
    if (this.#log_bytes > CHECKPOINT_BYTES) this.#checkpoint('PASSIVE');
  }

  #commit(batches: Batch[]): void {
    const started_ms = performance.now();
    const waiting = this.#unrecorded;
    try {
      this.#store.begin();
      for (const { outcomes } of waiting) for (const outcome of outcomes) this.#store.settle(outcome);
      const done = batches.map((batch) => this.#apply(batch));
      const added = this.#store.commit();
      this.#unrecorded = [];
      if (added.length > 0) this.#files.high_water.write(this.#store.next_sequence - 1);
      const late = waiting.map(({ batch }): BatchDone => ({ batch, results: [], is_recorded: true }));
      this.#done(
        [...late, ...done],
        added.length === 0 || batches.at(-1)?.wants_records ? added : null,
        null,
        started_ms,
      );
      const rows = batches.reduce((sum, { outcomes, appends }) => sum + outcomes.length + appends.length, 1);
      this.#log_bytes += rows * ROW_LOG_BYTES;
    } catch (error) {
      this.#store.rollback();
      const lost = batches.filter(({ outcomes }) => outcomes.length > 0);
      this.#unrecorded = [...waiting, ...lost.map(({ batch, outcomes }) => ({ batch, outcomes }))];
      this.#done(batches.map(refused), [], (error as Error).message, started_ms);
    }
  }

  #apply({ batch, appends, outcomes }: Batch): BatchDone {
    for (const outcome of outcomes) this.#store.settle(outcome);
    return { batch, results: appends.map((append) => this.#store.append(append)), is_recorded: true };
  }

  #done(batches: BatchDone[], added: DueRecord[] | null, trouble: string | null, started_ms: number): void {
    const commit_ms = performance.now() - started_ms;
    this.#reply({ kind: 'done', batches, counts: this.#store.counts(), added, trouble, commit_ms });
  }

  #answer(call: Call): void {
    let output: unknown = null;
    let error: string | null = null;
    try {
      output = this.#call(call);
    } catch (thrown) {
      this.#store.rollback();
      error = (thrown as Error).message;
    }
    this.#reply({ kind: 'answer', call: call.call, counts: this.#store.counts(), output, error });
  }

  #call(call: Call): Calls[CallName]['out'] {
    switch (call.name) {
      case 'adopt':
        return this.#adopt(call.input);
      case 'untried':
        return this.#store.untried(call.input.after_id, call.input.limit);
      case 'due':
        return this.#store.due(call.input.limit);
      case 'overdue':
        return this.#store.overdue(call.input.limit);
      case 'probeCandidate':
        return this.#store.probeCandidate(call.input.held);
      case 'list':
        return this.#inspection.list(call.input);
      case 'find':
        return this.#inspection.find(call.input.event_id);
      case 'replay':
        return this.#write(() => this.#store.replay(call.input.event_id));
      case 'replayAll':
        return this.#replayAll(call.input.state);
      case 'after':
        return this.#inspection.after(call.input.sequence + this.#store.id_offset, call.input.limit);
      case 'lastSequence':
        return this.#store.next_sequence - 1;
      case 'oldestPending':
        return this.#store.oldestPending();
      case 'tree':
        return this.#store.tree(call.input.after_id, call.input.limit);
      case 'prune':
        return this.#prune();
      case 'checkpoint':
        this.#checkpoint('TRUNCATE');
        return null;
      case 'close':
        this.#checkpoint('TRUNCATE');
        this.#db.close();
        this.#files.lock.close();
        return null;
    }
  }

  #adopt(owner: Calls['adopt']['in']): Calls['adopt']['out'] {
    const earlier = this.#store.sandbox_id;
    const foreign_records = this.#write(() => this.#store.adopt(owner));
    const acknowledged = this.#files.high_water.open(owner.sandbox_id);
    const lost_records = Math.max(0, acknowledged - (this.#store.next_sequence - 1));
    if (lost_records > 0) this.#write(() => this.#store.skipSequence(acknowledged));
    return {
      was_ready: this.#store.is_ready,
      lost_records,
      set_aside: this.#files.set_aside,
      foreign_records,
      is_other_sandbox: earlier !== null && earlier !== owner.sandbox_id,
    };
  }

  #replayAll(state: Calls['replayAll']['in']['state']): number {
    const deadline = this.#store.counts()[state];
    let replayed = 0;
    while (replayed < deadline) {
      const event_ids = this.#store.idsIn(state, REPLAY_ROWS);
      if (event_ids.length === 0) break;
      this.#write(() => {
        for (const event_id of event_ids) this.#store.replay(event_id);
      });
      replayed += event_ids.length;
    }
    return replayed;
  }

  /** Removes what was kept long enough and gives its space back, a part at a time. Source: contract section 3. */
  #prune(): { more: boolean } {
    const due = RETENTION.filter(([state, ms, records]) => this.#store.hasPrunable(state, ms, records));
    let removed = 0;
    if (due.length > 0) {
      this.#write(() => {
        for (const [state, ms, records] of due) {
          removed = Math.max(removed, this.#store.prune(state, ms, records, PRUNE_ROWS));
        }
      });
    }
    const free_pages = this.#db.pragma('freelist_count', { simple: true }) as number;
    if (free_pages > 0) {
      this.#db.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`);
      this.#log_bytes += CHECKPOINT_BYTES / 4;
    }
    return { more: removed === PRUNE_ROWS || free_pages > VACUUM_PAGES };
  }

  #write<Result>(change: () => Result): Result {
    this.#store.begin();
    const result = change();
    this.#store.commit();
    this.#log_bytes += PRUNE_ROWS * ROW_LOG_BYTES;
    return result;
  }

  #checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): void {
    this.#log_bytes = 0;
    try {
      this.#db.pragma(`wal_checkpoint(${mode})`);
    } catch {
      // The log keeps everything; the next commit that needs the disk tells the trouble.
    }
  }
}

function refused({ batch, appends, outcomes }: Batch): BatchDone {
  const results = appends.map((): AppendResult => ({ outcome: 'unavailable' }));
  return { batch, results, is_recorded: outcomes.length === 0 };
}
