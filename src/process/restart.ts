import type { Timer } from '../base/clock.ts';
import { backoffMs } from '../contract/backoff.ts';
import {
  RESTART_BACKOFF_CAP_MS,
  RESTART_BACKOFF_FIRST_MS,
  RESTART_JITTER,
  RESTART_RESET_MS,
} from '../contract/defaults.ts';
import type { RestartOptions } from '../contract/processes.ts';
import type { TimerSet } from './pausable-timer.ts';

/** Doubled if the first delay is 0, so that a process that always fails does not use up the machine. */
const GROWTH_MIN_MS = 1;

/** What the decision on a restart depends on. `exit_code` is null if it is unknown. */
export interface RunOutcome {
  exit_code: number | null;
  uptime_ms: number;
  restart_count: number;
}

/**
 * Decides on a restart and its delay: exponential from the first delay to the cap, with jitter, starting again
 * after a run that stayed up. Its only state is the count of consecutive failures. Source: contract section 4.
 */
export class RestartBackoff {
  readonly #options: RestartOptions;
  readonly #random: () => number;
  #failures_in_a_row = 0;

  /** `random` gives numbers from 0 to 1. */
  constructor(options: RestartOptions, random: () => number) {
    this.#options = options;
    this.#random = random;
  }

  /** The delay in ms before the next run, or null if no run follows. Counts the run as a failure. */
  after(outcome: RunOutcome): number | null {
    const { policy, max_restarts = Number.POSITIVE_INFINITY } = this.#options;
    if (policy === 'never' || (policy === 'on-failure' && outcome.exit_code === 0)) return null;
    if (outcome.restart_count >= max_restarts) return null;
    if (outcome.uptime_ms >= RESTART_RESET_MS) this.#failures_in_a_row = 0;
    const { backoff_ms: first_ms = RESTART_BACKOFF_FIRST_MS } = this.#options;
    this.#failures_in_a_row += 1;
    const base_ms = this.#failures_in_a_row === 1 ? first_ms : Math.max(first_ms, GROWTH_MIN_MS);
    const max_ms = Math.max(first_ms, RESTART_BACKOFF_CAP_MS);
    return backoffMs(this.#failures_in_a_row, { base_ms, max_ms, jitter: RESTART_JITTER }, this.#random());
  }
}

/** Times the restarts of one process, and rules them out once it is to end. */
export class RestartSchedule {
  readonly #backoff: RestartBackoff;
  readonly #timers: TimerSet;
  readonly #mayStart: () => boolean;
  #timer: Timer | null = null;
  #is_forbidden = false;

  /** `mayStart` is asked when a restart is due; if it gives false, the restart waits for the longest backoff. */
  constructor(backoff: RestartBackoff, timers: TimerSet, mayStart: () => boolean) {
    this.#backoff = backoff;
    this.#timers = timers;
    this.#mayStart = mayStart;
  }

  /** Whether `forbid` was called. */
  get is_forbidden(): boolean {
    return this.#is_forbidden;
  }

  /** Rules out restarts after the next end. A restart that is already scheduled needs `cancel`. */
  forbid(): void {
    this.#is_forbidden = true;
  }

  /** The delay in ms before the next run, or null if no run follows. See RestartBackoff. */
  delayAfter(exit_code: number | null, uptime_ms: number, restart_count: number): number | null {
    return this.#is_forbidden ? null : this.#backoff.after({ exit_code, uptime_ms, restart_count });
  }

  /** Calls `onDue` after `delay_ms`, pauses not counted. */
  schedule(delay_ms: number, onDue: () => void): void {
    this.#timer = this.#timers.after(delay_ms, () => {
      this.#timer = null;
      if (!this.#mayStart()) return this.schedule(RESTART_BACKOFF_CAP_MS, onDue);
      onDue();
    });
  }

  /** Cancels the restart that is scheduled, if any. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}
