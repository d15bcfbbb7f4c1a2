import type { OutboxRow, OwnState, SandboxCounters } from './rows.ts';
import type { Statements } from './statements.ts';

/** How long records are kept after their sandbox is no longer the current one: delivered ones, and all. */
export interface KeepForeign {
  delivered_ms: number;
  all_ms: number;
}

/** The numbers of a sandbox that has no record yet. */
const NEW_SANDBOX = {
  next_sequence: 1,
  is_ready: 0,
  pending: 0,
  delivered: 0,
  failed: 0,
  expired: 0,
  bytes: 0,
  pending_bytes: 0,
  delivered_bytes: 0,
};

/**
 * The counters of the other sandboxes with records in the outbox. Their records stay as they were, and are `foreign`
 * until their sandbox is the current one again. Source: contract section 3, Scope.
 */
export class OtherSandboxes {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Stores the current sandbox's counters in `row` and replaces them by those of `sandbox_id`, new or as it left them. */
  change(row: OutboxRow, sandbox_id: string, now_ms: number): void {
    this.#sql.leave.run({ ...row, left_ms: now_ms });
    const left = kept(row);
    const number = this.#lastNumber() + 1;
    const earlier = this.#sql.comeBack.get(sandbox_id) as SandboxCounters | undefined;
    Object.assign(row, earlier ?? { ...NEW_SANDBOX, number }, { sandbox_id, first_id: row.next_id });
    row.foreign += left - kept(row);
  }

  #lastNumber(): number {
    return this.#sql.lastNumber.get() as number;
  }

  /** How many of their records are pending. */
  pending(): number {
    return this.#sql.foreignPending.get() as number;
  }

  /** Whether `prune` would remove anything. */
  hasPrunable({ delivered_ms, all_ms }: KeepForeign, now_ms: number): boolean {
    return this.#due(now_ms - delivered_ms, now_ms - all_ms) !== undefined;
  }

  #due(delivered_ms: number, all_ms: number): { number: number; is_all: number } | undefined {
    return this.#sql.foreignDue.get({ delivered_ms, all_ms }) as
      | { number: number; is_all: number }
      | undefined;
  }

  /**
   * Up to `limit` records of one sandbox that were kept long enough, no longer counted: they are to be removed. Its own
   * numbers stay: the sandbox may come back, and must not use a sequence twice.
   */
  prune({ delivered_ms, all_ms }: KeepForeign, now_ms: number, limit: number): number[] {
    const due = this.#due(now_ms - delivered_ms, now_ms - all_ms);
    if (!due) return [];
    const rows = this.#sql.foreignRows.all(due.number, due.is_all, limit) as {
      id: number;
      state: OwnState;
    }[];
    const counts = { pending: 0, delivered: 0, failed: 0, expired: 0 };
    for (const { state } of rows) counts[state] += 1;
    this.#sql.foreignGone.run({ number: due.number, ...counts });
    return rows.map(({ id }) => id);
  }

  /** Counts a salvaged record; returns the number of its sandbox, which counts as having left now where it is new. */
  found(sandbox_id: string, sequence: number, state: OwnState, present: number, now_ms: number): number {
    let number = this.#sql.numberOf.get(sandbox_id) as number | undefined;
    if (number === undefined) {
      number = Math.max(this.#lastNumber(), present) + 1;
      this.#sql.leave.run({ ...NEW_SANDBOX, number, sandbox_id, left_ms: now_ms });
    }
    this.#sql.foreignFound.run({ number, state, sequence });
    return number;
  }
}

function kept({ pending, delivered, failed, expired }: OutboxRow): number {
  return pending + delivered + failed + expired;
}
