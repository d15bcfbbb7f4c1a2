import { attemptRow, outcomeChange } from '../../delivery-lifecycle.ts';
import type { AttemptOutcome } from '../../store.ts';
import type { OutboxState } from './outbox-state.ts';
import type { Statements } from './statements.ts';

/** One moment, on the store's clock and in wall time. */
interface Now {
  ms: number;
  wall_ms: number;
}

/** The results of attempts: the attempt log, and the state in which each attempt leaves its record. */
export class Outcomes {
  readonly #sql: Statements;
  readonly #state: OutboxState;

  constructor(sql: Statements, state: OutboxState) {
    this.#sql = sql;
    this.#state = state;
  }

  /**
   * Records attempts and the new states of their records. A record that is no longer pending, or whose attempt was
   * recorded before, stays as it is.
   */
  record(outcomes: readonly AttemptOutcome[]): void {
    const now = { ms: this.#state.now(), wall_ms: this.#state.clock.wallMs() };
    const first_successes = outcomes.filter(isFirstSuccess);
    if (first_successes.length > 0) this.#recordFirstSuccesses(first_successes, now);
    for (const outcome of outcomes) if (!isFirstSuccess(outcome)) this.#recordOne(outcome, now);
  }

  /** Nearly all outcomes are like this: one statement changes their deliveries. */
  #recordFirstSuccesses(outcomes: AttemptOutcome[], now: Now): void {
    const ids = JSON.stringify(outcomes.map(({ id }) => id));
    const rows = this.#sql.deliverFirst.all(now.ms, now.wall_ms, ids) as [id: number, size_bytes: number][];
    for (const [, size_bytes] of rows) this.#state.move('pending', 'delivered', size_bytes);
    const delivered = new Set(rows.map(([id]) => id));
    for (const outcome of outcomes) if (delivered.has(outcome.id)) this.#log(outcome, now);
  }

  #recordOne(outcome: AttemptOutcome, now: Now): void {
    const size_bytes = this.#sql.pendingSize.get(outcome.id, outcome.attempt) as number | undefined;
    if (size_bytes === undefined) return;
    const change = outcomeChange(outcome.decision, now.ms);
    // By position: bound by name, the same values take the driver a quarter longer for each attempt.
    this.#sql.recordOutcome.run(
      change.state,
      outcome.attempt,
      change.due_ms,
      change.probe_ms,
      change.finished_ms,
      change.finished_ms === null ? null : now.wall_ms,
      outcome.id,
    );
    this.#state.move('pending', change.state, size_bytes);
    this.#log(outcome, now);
  }

  #log(outcome: AttemptOutcome, now: Now): void {
    const row = attemptRow(outcome, now.wall_ms - now.ms);
    this.#sql.insertAttempt.run(
      outcome.id,
      row.attempt,
      row.started_at_ms,
      row.duration_ms,
      row.status,
      row.error,
      row.next_attempt_at_ms,
      row.response_body,
      row.error_detail,
    );
  }
}

function isFirstSuccess({ attempt, decision }: AttemptOutcome): boolean {
  return attempt === 1 && decision.state === 'delivered';
}
