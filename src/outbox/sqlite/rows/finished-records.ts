import { UNDELIVERED_STATES, type UndeliveredState } from '../../../contract/words.ts';
import { replayChange } from '../../delivery-lifecycle.ts';
import type { Discarded } from '../../store.ts';
import type { KeepForeign, OtherSandboxes } from './other-sandboxes.ts';
import type { OutboxState } from './outbox-state.ts';
import type { OutboxRow, OwnState } from './rows.ts';
import type { Statements } from './statements.ts';

/** How long, and how much at most, is kept of the records in a final state. Source: contract section 3, Retention. */
export interface Keep {
  state: OwnState;
  keep_ms: number;
  keep_records: number;
  /** Of delivered records alone: the others count against the bounds. */
  keep_bytes: number;
}

interface FoundRecord {
  id: number;
  /** The number of its sandbox. */
  sandbox: number;
  state: OwnState;
  size_bytes: number;
}

/** Records that make room at a time, and in one commit at most: a bound that was lowered by a restart is reached by steps. */
const ROOM_RECORDS = 500;
/** Read at least: a large record takes the room of several. */
const ROOM_RECORDS_READ = 8;
const ROOM_RECORDS_MAX = 20 * ROOM_RECORDS;

/** The records in a final state: they are replayed, or removed when they were kept long enough. */
export class FinishedRecords {
  readonly #sql: Statements;
  readonly #state: OutboxState;
  readonly #others: OtherSandboxes;

  constructor(sql: Statements, state: OutboxState, others: OtherSandboxes) {
    this.#sql = sql;
    this.#state = state;
    this.#others = others;
  }

  /**
   * Makes a finished record pending again, with the same bytes and a new window; false where there is no such record of
   * this sandbox. Source: contract section 4.
   */
  replay(event_id: string): boolean {
    const row = this.#find(event_id);
    if (row?.sandbox !== this.#state.row.number) return false;
    if (row.state === 'pending') return true;
    const change = replayChange(this.#state.now(), this.#state.limits.window_ms);
    this.#sql.replay.run({ id: row.id, ...change });
    this.#state.move(row.state, 'pending', row.size_bytes);
    return true;
  }

  /** Event ids in a state, for replaying them a part at a time. */
  idsIn(state: OwnState, limit: number): string[] {
    const rows = this.#sql.idsIn.all(this.#state.row.number, state, limit) as { event_id: string }[];
    return rows.map((row) => row.event_id);
  }

  /** Removes a finished record of this sandbox, or says why not. Source: contract section 4. */
  discard(event_id: string): Discarded {
    const row = this.#find(event_id);
    if (!row) return 'absent';
    if (row.sandbox !== this.#state.row.number) return 'foreign';
    if (row.state === 'pending') return 'pending';
    this.#state.count(row.state, row.size_bytes, -1);
    this.#remove([row.id]);
    return 'discarded';
  }

  /** Removes up to `limit` records in a state; returns how many. */
  discardSome(state: UndeliveredState, limit: number): number {
    const gone = this.#oldest(state, limit);
    for (const { size_bytes } of gone) this.#state.count(state, size_bytes, -1);
    this.#remove(gone.map(({ id }) => id));
    return gone.length;
  }

  #find(event_id: string): FoundRecord | undefined {
    return this.#sql.stateOf.get(event_id) as FoundRecord | undefined;
  }

  /** Whether `prune` would remove anything. */
  hasPrunable(rule: Keep): boolean {
    const { row } = this.#state;
    if (surplus(row, rule) > 0) return true;
    const [oldest] = this.#sql.oldest.all(row.number, rule.state, 1) as { finished_ms: number }[];
    return oldest !== undefined && oldest.finished_ms <= this.#state.now() - rule.keep_ms;
  }

  /**
   * Removes up to `limit` finished records past their retention or beyond its limits, oldest first; returns how many.
   */
  prune(rule: Keep, limit: number): number {
    const gone = this.#takePrunable(rule, limit);
    this.#remove(gone);
    return gone.length;
  }

  /**
   * Removes failed and expired records, oldest first, until all undelivered ones keep to the bounds; returns how many.
   * Source: contract section 3, Bounds.
   */
  makeRoom(): number {
    let removed = 0;
    while (removed < ROOM_RECORDS_MAX) {
      const gone = this.#takeForRoom();
      if (gone.length === 0) break;
      this.#remove(gone);
      removed += gone.length;
    }
    return removed;
  }

  /** Ids of the oldest records that must make room, which are no longer counted; none where all keep to the bounds. */
  #takeForRoom(): number[] {
    const { row, limits } = this.#state;
    const surplus_records = () => row.pending + row.failed + row.expired - limits.max_records;
    const isOver = () => surplus_records() > 0 || row.bytes > limits.max_bytes;
    if (!isOver()) return [];
    const limit = Math.min(ROOM_RECORDS, Math.max(ROOM_RECORDS_READ, surplus_records()));
    const oldest = UNDELIVERED_STATES.flatMap((state) =>
      this.#oldest(state, limit).map((record) => ({ ...record, state })),
    );
    const gone: number[] = [];
    for (const { id, state, size_bytes } of oldest.sort((a, b) => a.finished_ms - b.finished_ms)) {
      if (gone.length === limit || !isOver()) break;
      this.#state.count(state, size_bytes, -1);
      gone.push(id);
    }
    return gone;
  }

  #oldest(state: OwnState, limit: number): { id: number; finished_ms: number; size_bytes: number }[] {
    const rows = this.#sql.oldest.all(this.#state.row.number, state, limit);
    return rows as { id: number; finished_ms: number; size_bytes: number }[];
  }

  /** Ids of the records to remove, which are no longer counted. */
  #takePrunable(rule: Keep, limit: number): number[] {
    const { row } = this.#state;
    const { state, keep_ms, keep_bytes } = rule;
    const too_many = surplus(row, { ...rule, keep_bytes: Number.POSITIVE_INFINITY });
    const cutoff_ms = this.#state.now() - keep_ms;
    const gone: number[] = [];
    for (const { id, finished_ms, size_bytes } of this.#oldest(state, limit)) {
      const is_large = state === 'delivered' && row.delivered_bytes > keep_bytes;
      if (gone.length >= too_many && finished_ms > cutoff_ms && !is_large) break;
      gone.push(id);
      this.#state.count(state, size_bytes, -1);
    }
    return gone;
  }

  /** Removes records of this sandbox; those that a manager may not have read yet are left without their deliveries. */
  #remove(gone: number[]): void {
    const ids = JSON.stringify(gone);
    this.#sql[this.#state.record_key === null ? 'remove' : 'removeButLifecycle'].run(ids);
    this.#removeDeliveries(ids);
  }

  #removeDeliveries(ids: string): void {
    this.#sql.removeDeliveries.run(ids);
    this.#sql.removeAttempts.run(ids);
  }

  /** Whether `pruneForeign` would remove anything. */
  hasPrunableForeign(keep: KeepForeign): boolean {
    return this.#state.row.foreign > 0 && this.#others.hasPrunable(keep, this.#state.now());
  }

  /** Removes up to `limit` records of other sandboxes past their retention; returns how many. */
  pruneForeign(keep: KeepForeign, limit: number): number {
    const gone = this.#others.prune(keep, this.#state.now(), limit);
    const ids = JSON.stringify(gone);
    this.#sql.remove.run(ids);
    this.#removeDeliveries(ids);
    this.#state.row.foreign -= gone.length;
    return gone.length;
  }
}

/** How many records are too many by number; at least 1 where they are too large. */
function surplus(row: OutboxRow, { state, keep_records, keep_bytes }: Keep): number {
  const is_large = state === 'delivered' && row.delivered_bytes > keep_bytes;
  return Math.max(row[state] - keep_records, is_large && row[state] > 0 ? 1 : 0);
}
