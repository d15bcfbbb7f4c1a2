import type { OutboxState } from './outbox-state.ts';
import { isAuthentic, type UntrustedRow } from './record-mac.ts';
import { dueRecord, isWhole, type ReadRecord, type RecordRow } from './rows.ts';
import type { Statements } from './statements.ts';

/** How much of the backlog is read at once, about: a record that is sent keeps in memory all that came with it. */
export const READ_BYTES = 1024 * 1024;

/**
 * The pending records, as the dispatcher reads them. A record that is not as it was committed is left out, and made
 * `failed` by `failUnsendable`: it is never sent.
 */
export class Backlog {
  readonly #sql: Statements;
  readonly #state: OutboxState;
  /** No record up to this one is untried. */
  #tried_up_to_id = 0;
  /** Ids of pending records that were read and must not be sent: changed by the disk, or made by another program. */
  readonly #unsendable = { damaged: [] as number[], forged: [] as number[] };

  constructor(sql: Statements, state: OutboxState) {
    this.#sql = sql;
    this.#state = state;
  }

  /** See `DeliveryStore.untried`. */
  untried(after_id: number, limit: number): { records: ReadRecord[]; more: boolean } {
    const rows: RecordRow[] = [];
    let bytes = 0;
    let more = false;
    const { number, next_id } = this.#state.row;
    const from_id = Math.max(after_id, this.#tried_up_to_id);
    const found = this.#sql.untried.iterate(number, from_id, limit + 1) as IterableIterator<RecordRow>;
    for (const row of found) {
      more = rows.length === limit || bytes >= READ_BYTES;
      if (more) break;
      rows.push(row);
      bytes += row.body.length;
    }
    // Nothing becomes untried again: what was skipped once need not be read again.
    if (from_id === this.#tried_up_to_id) this.#tried_up_to_id = (rows[0]?.id ?? next_id) - 1;
    return { records: this.#sendable(rows), more };
  }

  /** Reads untried records from `id` on again: they were not there before. */
  noteUntried(id: number): void {
    this.#tried_up_to_id = Math.min(this.#tried_up_to_id, id - 1);
  }

  /** See `DeliveryStore.due`. */
  due(limit: number): { records: ReadRecord[]; next_due_ms: number | null } {
    const now_ms = this.#state.now();
    const rows = this.#sql.due.all(this.#state.row.number, limit + 1) as RecordRow[];
    const ready = rows.slice(0, limit).filter((row) => row.due_ms <= now_ms);
    return { records: this.#sendable(ready), next_due_ms: rows[ready.length]?.due_ms ?? null };
  }

  /** See `DeliveryStore.overdue`. */
  overdue(limit: number): { records: ReadRecord[]; next_deadline_ms: number | null } {
    const now_ms = this.#state.now();
    const rows = this.#sql.overdue.all(this.#state.row.number, limit + 1) as RecordRow[];
    const ready = rows.slice(0, limit).filter((row) => row.deadline_ms <= now_ms);
    return { records: this.#sendable(ready), next_deadline_ms: rows[ready.length]?.deadline_ms ?? null };
  }

  /** See `DeliveryStore.probeCandidate`. */
  probeCandidate(in_flight: number[]): ReadRecord | null {
    const rows = this.#sql.probe.all(this.#state.row.number, in_flight.length + 1) as RecordRow[];
    const row = rows.find(({ id }) => !in_flight.includes(id));
    return row ? (this.#sendable([row])[0] ?? null) : null;
  }

  /** Wall time of the oldest pending record's commit, or null; a replayed one counts from its replay. */
  oldestPending(): number | null {
    const { clock, limits, row } = this.#state;
    const untried = this.untried(0, 1).records[0];
    const [retried] = this.#sql.overdue.all(row.number, 1) as RecordRow[];
    const to_wall_ms = clock.wallMs() - this.#state.now();
    const times_ms = [
      ...(untried ? [untried.created_at_ms] : []),
      ...(retried ? [retried.deadline_ms - limits.window_ms + to_wall_ms] : []),
    ];
    return times_ms.length > 0 ? Math.min(...times_ms) : null;
  }

  /** Leaves out, and notes, the records that are not as they were committed. */
  #sendable(rows: RecordRow[]): ReadRecord[] {
    return rows.flatMap((row) => {
      const is_own = this.#isOwn(row);
      const record = is_own && isWhole(row) ? dueRecord(row) : null;
      if (record) return [record];
      this.#unsendable[is_own || !isWhole(row) ? 'damaged' : 'forged'].push(row.id);
      return [];
    });
  }

  /** Whether this sandbox's daemon made a record; true without a record key, where that cannot be checked. */
  #isOwn(row: UntrustedRow): boolean {
    const { record_key, owner } = this.#state;
    return record_key === null || (row.sandbox_id === owner?.sandbox_id && isAuthentic(record_key, row));
  }

  /** Whether records were read that must not be sent. */
  get has_unsendable(): boolean {
    return this.#unsendable.damaged.length + this.#unsendable.forged.length > 0;
  }

  /** Makes the records that must not be sent `failed`; returns how many were damaged and how many forged. */
  failUnsendable(): { damaged: number; forged: number } {
    const { damaged, forged } = this.#unsendable;
    return { damaged: this.#fail(damaged.splice(0)), forged: this.#fail(forged.splice(0)) };
  }

  #fail(ids: number[]): number {
    const now = { finished_ms: this.#state.now(), finished_at_ms: this.#state.clock.wallMs() };
    let failed = 0;
    for (const id of ids) {
      const row = this.#sql.fail.get({ id, ...now }) as { size_bytes: number } | undefined;
      if (!row) continue;
      this.#state.move('pending', 'failed', row.size_bytes);
      failed += 1;
    }
    return failed;
  }
}
