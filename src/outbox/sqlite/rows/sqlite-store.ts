import type { Database } from 'better-sqlite3';
import type { Clock } from '../../../base/clock.ts';
import { keptClock } from '../../../base/kept-clock.ts';
import type { OutboxCounts } from '../../../contract/deliveries.ts';
import type { LoadedRecord } from '../../store.ts';
import { AddedRecords } from './added-records.ts';
import { Backlog } from './backlog.ts';
import { FinishedRecords } from './finished-records.ts';
import { LifecycleRecords } from './lifecycle-records.ts';
import { OtherSandboxes } from './other-sandboxes.ts';
import { type OutboxLimits, OutboxState, type Ownership } from './outbox-state.ts';
import { Outcomes } from './outcomes.ts';
import type { OutboxRow } from './rows.ts';
import { prepareStatements, type Statements } from './statements.ts';
import { TakenOverRecords } from './taken-over-records.ts';

/**
 * The outbox's rows. Every verb is synchronous and throws what SQLite throws. Changes are made between `begin` and
 * `commit`, so that many share one sync; after `rollback` nothing of them is left, not even in memory. Each stage of a
 * record's life has a file: it is added, waits in the backlog, has outcomes, and is kept once it is finished.
 */
export class SqliteStore {
  readonly added: AddedRecords;
  readonly backlog: Backlog;
  readonly outcomes: Outcomes;
  readonly finished: FinishedRecords;
  readonly taken_over: TakenOverRecords;
  readonly lifecycle: LifecycleRecords;
  readonly #db: Database;
  readonly #sql: Statements;
  readonly #state: OutboxState;
  readonly #others: OtherSandboxes;
  #dropped = 0;

  /**
   * `before`: the store that this one replaces; numbers and the clock continue from there. `offset_ms`: continues the
   * clock alone, because the rows are the same.
   */
  constructor(db: Database, clock: Clock, limits: OutboxLimits, before?: SqliteStore, offset_ms?: number) {
    const sql = prepareStatements(db);
    const row = sql.readOutbox.get() as OutboxRow;
    const state = new OutboxState(row, clock, limits, before ? before.#state : undefined, offset_ms);
    const others = new OtherSandboxes(sql);
    const backlog = new Backlog(sql, state);
    this.lifecycle = new LifecycleRecords(sql, state);
    this.added = new AddedRecords(sql, state, this.lifecycle);
    this.backlog = backlog;
    this.outcomes = new Outcomes(sql, state);
    this.finished = new FinishedRecords(sql, state, others);
    this.taken_over = new TakenOverRecords({ db, sql, state, others, backlog });
    this.#db = db;
    this.#sql = sql;
    this.#state = state;
    this.#others = others;
  }

  /** The sandbox that the outbox is for; null before `adopt`. */
  get owner(): Ownership | null {
    return this.#state.owner;
  }

  /** Store time minus monotonic time, in ms. */
  get offset_ms(): number {
    return this.#state.offset_ms;
  }

  /** The store's clock, in ms. */
  now(): number {
    return this.#state.now();
  }

  /** Records by state, and bytes. */
  counts(): OutboxCounts {
    const { pending, delivered, failed, expired, foreign, bytes } = this.#state.row;
    return { pending, delivered, failed, expired, foreign, bytes };
  }

  /** The sequence of the next record. */
  get next_sequence(): number {
    return this.#state.row.next_sequence;
  }

  /** The number that marks the deliveries of this sandbox; those with another number are foreign. */
  get number(): number {
    return this.#state.row.number;
  }

  /** The id before the first that a record after a sequence can have; exact since this sandbox was the last to change. */
  idBefore(sequence: number): number {
    const { next_id, next_sequence, first_id } = this.#state.row;
    const id = sequence + next_id - next_sequence;
    return id >= first_id - 1 ? id : sequence;
  }

  /** The sandbox that the outbox was last written for; null where it is new. */
  get sandbox_id(): string | null {
    return this.#state.row.sandbox_id;
  }

  /** Whether `sandbox.ready` was committed and no `sandbox.killed` after it. */
  get is_ready(): boolean {
    return this.#state.row.is_ready === 1;
  }

  /** Begins a transaction. `drafts`: how many are about to be appended, at least. */
  begin(drafts = 0): void {
    this.#state.committed();
    this.added.begin(drafts);
    this.#sql.begin.run();
  }

  /** Makes everything since `begin` durable: returns after the sync. The records that were added are returned. */
  commit(): LoadedRecord[] {
    const { row, clock } = this.#state;
    const dropped = this.finished.makeRoom();
    Object.assign(row, keptClock(clock, this.now()));
    this.#sql.writeOutbox.run(row);
    this.#sql.commit.run();
    this.#state.committed();
    this.#dropped += dropped;
    return this.added.end();
  }

  /** How many failed and expired records were removed before their time since the last call, to make room. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Takes back everything since `begin`. */
  rollback(): void {
    if (this.#db.inTransaction) this.#sql.rollback.run();
    this.#state.rolledBack();
    this.added.end();
  }

  /**
   * Makes the outbox this sandbox's: the records of every other one are foreign as long as it is. A sandbox that comes
   * back finds its records and numbers as it left them; a new one begins anew. Source: contract section 3, Scope.
   */
  adopt(owner: Ownership): void {
    this.#state.owner = owner;
    const { sandbox_id } = owner;
    const { row } = this.#state;
    if (row.sandbox_id === sandbox_id) return;
    if (row.sandbox_id === null) {
      row.sandbox_id = sandbox_id;
      return;
    }
    this.lifecycle.forget(row.sandbox_id);
    this.#others.change(row, sandbox_id, this.now());
    this.backlog.noteUntried(1);
    this.#sql.clearTree.run();
  }

  /** Records of other sandboxes that were not delivered. */
  foreignPending(): number {
    return this.#others.pending();
  }

  /** Does not use sequences up to `highest` again: a lost outbox has assigned them. */
  skipSequence(highest: number): void {
    const { row } = this.#state;
    const skipped = Math.max(0, highest + 1 - row.next_sequence);
    row.next_sequence += skipped;
    row.next_id += skipped;
  }

  /** Rows of the watched tree after an id, in order. */
  tree(after_id: number, limit: number): { id: number; entry: string }[] {
    return this.#sql.tree.all(after_id, limit) as { id: number; entry: string }[];
  }
}
