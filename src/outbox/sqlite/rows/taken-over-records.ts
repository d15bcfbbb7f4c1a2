import type { Database } from 'better-sqlite3';
import type { DeliveryState } from '../../../contract/words.ts';
import type { Backlog } from './backlog.ts';
import type { OtherSandboxes } from './other-sandboxes.ts';
import type { OutboxState } from './outbox-state.ts';
import { isWhole, type OwnState, recordSizeBytes, type StoredDelivery, type StoredRecord } from './rows.ts';
import type { Statements } from './statements.ts';

/** The parts of a store that `TakenOverRecords` works with. */
export interface TakenOverParts {
  db: Database;
  sql: Statements;
  state: OutboxState;
  others: OtherSandboxes;
  backlog: Backlog;
}

/** The records that are taken over from a damaged outbox. Call its verbs between `begin` and `commit` of the store. */
export class TakenOverRecords {
  readonly #db: Database;
  readonly #sql: Statements;
  readonly #state: OutboxState;
  readonly #others: OtherSandboxes;
  readonly #backlog: Backlog;

  constructor({ db, sql, state, others, backlog }: TakenOverParts) {
    this.#db = db;
    this.#sql = sql;
    this.#state = state;
    this.#others = others;
    this.#backlog = backlog;
  }

  /** The store's clock, in ms. */
  now(): number {
    return this.#state.now();
  }

  /** Whether an event is kept. */
  has(event_id: string): boolean {
    return this.#sql.stateOf.get(event_id) !== undefined;
  }

  /**
   * Takes a record over, if it is whole; returns its state, or null. A record whose delivery is not known is sent: a
   * duplicate is better than a loss.
   */
  takeOver(record: StoredRecord, known: StoredDelivery | null, attempts: unknown[][]): DeliveryState | null {
    if (!isWhole(record)) return null;
    const { changes } = this.#sql.takeOver.run(record);
    if (changes === 0) return null;
    const { row } = this.#state;
    const is_ours = record.sandbox_id === row.sandbox_id;
    const delivery = known ?? this.#neverTried(record);
    const { state, size_bytes } = delivery;
    const sandbox = is_ours ? row.number : this.#foreign(record, state);
    this.#sql.takeOverDelivery.run({ ...delivery, id: record.id, sandbox });
    for (const attempt of attempts) this.#sql.insertAttempt.run(record.id, ...attempt);
    if (!is_ours) return 'foreign';
    this.#state.count(state, size_bytes);
    if (delivery.due_ms === 0) this.#backlog.noteUntried(record.id);
    return state;
  }

  #foreign({ sandbox_id, sequence }: StoredRecord, state: OwnState): number {
    const { row } = this.#state;
    row.foreign += 1;
    return this.#others.found(sandbox_id, sequence, state, row.number, this.#state.now());
  }

  #neverTried({ headers, body }: StoredRecord): StoredDelivery {
    return {
      state: 'pending',
      size_bytes: recordSizeBytes(headers, body),
      deadline_ms: this.#state.now() + this.#state.limits.window_ms,
      due_ms: 0,
      probe_ms: null,
      finished_ms: null,
      finished_at_ms: null,
      attempts: 0,
      failures: 0,
    };
  }

  /** Makes a change wholly or, where it throws, not at all. */
  wholly<Result>(change: () => Result): Result {
    const row = { ...this.#state.row };
    this.#sql.savepoint.run();
    try {
      const result = change();
      this.#sql.release.run();
      return result;
    } catch (error) {
      this.#state.row = row;
      // Where there is no room SQLite has taken back everything already.
      if (this.#db.inTransaction) {
        this.#sql.rollbackTo.run();
        this.#sql.release.run();
      }
      throw error;
    }
  }

  /** Assigns an id that no record has. */
  newId(): number {
    const { row } = this.#state;
    row.first_id = row.next_id + 1;
    return row.next_id++;
  }

  /** Assigns neither a record's id nor, where it is this sandbox's, its sequence to another record. */
  passOver({ id, sandbox_id, sequence }: { id: number; sandbox_id: string; sequence: number }): void {
    const { row } = this.#state;
    row.next_id = Math.max(row.next_id, id + 1);
    row.first_id = row.next_id;
    if (sandbox_id !== row.sandbox_id) return;
    row.next_sequence = Math.max(row.next_sequence, sequence + 1);
  }

  /** Takes rows of the watched tree over. */
  takeOverTree(rows: { id: number; entry: string }[]): void {
    for (const { id, entry } of rows) this.#sql.putTree.run(id, entry);
  }
}
