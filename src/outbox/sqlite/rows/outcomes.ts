import { attemptRow, outcomeChange } from '../../delivery-lifecycle.ts';
import type { AttemptOutcome } from '../../store.ts';
import type { OutboxState } from './outbox-state.ts';
import type { Statements } from './statements.ts';

/** The results of attempts: the attempt log, and the state in which each attempt leaves its record. */
export class Outcomes {
  readonly #sql: Statements;
  readonly #state: OutboxState;

  constructor(sql: Statements, state: OutboxState) {
    this.#sql = sql;
    this.#state = state;
  }

  /**
   * Records an attempt and the new state of its record. A record that is no longer pending, or whose attempt was
   * recorded before, stays as it is.
   */
  record(outcome: AttemptOutcome): void {
    const wall_ms = this.#state.clock.wallMs();
    const now_ms = this.#state.now();
    const size_bytes = this.#sql.pendingSize.get(outcome.id, outcome.attempt) as number | undefined;
    if (size_bytes === undefined) return;
    const change = outcomeChange(outcome.decision, now_ms);
    // By position: bound by name, the same values take the driver a quarter longer for each attempt.
    this.#sql.recordOutcome.run(
      change.state,
      outcome.attempt,
      change.due_ms,
      change.probe_ms,
      change.finished_ms,
      change.finished_ms === null ? null : wall_ms,
      outcome.id,
    );
    this.#state.move('pending', change.state, size_bytes);
    const row = attemptRow(outcome, wall_ms - now_ms);
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
