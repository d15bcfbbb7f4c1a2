import type { FinalState } from '../contract/words.ts';
import type { Decision } from '../webhook/retry.ts';
import type { AttemptRow } from './delivery-view.ts';
import type { AttemptOutcome } from './store.ts';

/**
 * The lifecycle of a record, the same in every engine. `due_ms` is set exactly while it is pending.
 *
 * | State | `due_ms` | Entered by | Left by |
 * |---|---|---|---|
 * | `pending`, untried | 0 | commit | the outcome of its first attempt |
 * | `pending`, to be retried | > 0 | an outcome that asks for a retry; replay | an outcome |
 * | `delivered`, `failed`, `expired` | null | an outcome | replay; retention removes it |
 *
 * `foreign` is not stored: records of another sandbox are shown as `foreign`, whatever their state. An outcome of a
 * record that is not pending changes nothing. Source: contract section 3.
 */

/** The columns of a delivery that an outcome changes. `finished_ms`: when it became final, on the engine's clock. */
export interface OutcomeChange {
  state: 'pending' | FinalState;
  due_ms: number | null;
  probe_ms: number | null;
  finished_ms: number | null;
}

/** The change that a decision makes at `now_ms`. All times are in whole ms of the engine's clock. Pure. */
export function outcomeChange(decision: Decision, now_ms: number): OutcomeChange {
  const { state } = decision;
  if (state !== 'pending') return { state, due_ms: null, probe_ms: null, finished_ms: now_ms };
  return {
    state,
    due_ms: wholeMs(decision.due_ms),
    probe_ms: wholeMs(decision.probe_ms),
    finished_ms: null,
  };
}

/** The columns of a delivery that a replay changes. The attempt count continues. */
export interface ReplayChange {
  failures: 0;
  due_ms: number;
  probe_ms: number;
  deadline_ms: number;
}

/** The change that makes a final record pending again at `now_ms`, with a new window of `window_ms`. Pure. */
export function replayChange(now_ms: number, window_ms: number): ReplayChange {
  return { failures: 0, due_ms: now_ms, probe_ms: now_ms, deadline_ms: now_ms + window_ms };
}

/** The line of an outcome in the log of attempts; `to_wall_ms`: wall time minus the engine's clock. Pure. */
export function attemptRow(outcome: AttemptOutcome, to_wall_ms: number): AttemptRow {
  const { decision } = outcome;
  return {
    attempt: outcome.attempt,
    started_at_ms: Math.round(outcome.started_at_ms),
    duration_ms: Math.round(outcome.duration_ms),
    status: outcome.status,
    error: outcome.error,
    error_detail: outcome.error_detail,
    next_attempt_at_ms: decision.state === 'pending' ? Math.round(decision.due_ms + to_wall_ms) : null,
    response_body: outcome.response_body,
  };
}

/** 0 is for records that were never tried. */
function wholeMs(time_ms: number): number {
  return Math.max(1, Math.round(time_ms));
}
