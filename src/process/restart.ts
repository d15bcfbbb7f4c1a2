import {
  RESTART_BACKOFF_CAP_MS,
  RESTART_BACKOFF_FIRST_MS,
  RESTART_JITTER,
  RESTART_RESET_MS,
} from '../contract/defaults.ts';
import type { RestartOptions } from '../contract/processes.ts';

/** Doubled where the first delay is 0, so that a process that cannot run does not take the machine. */
const GROWTH_MIN_MS = 1;

/** How a run went, as far as a restart depends on it. `exit_code` is null where nobody knows it. */
export interface RunOutcome {
  exit_code: number | null;
  uptime_ms: number;
  restart_count: number;
}

/**
 * Decides on a restart and its delay: exponential from the first delay to the cap, with jitter, beginning anew
 * after a run that stayed up. Pure but for the count it keeps. Source: contract section 4.
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

  /** The delay in ms before the next run, or null where there is none. */
  after(outcome: RunOutcome): number | null {
    const { policy, max_restarts = Number.POSITIVE_INFINITY } = this.#options;
    if (policy === 'never' || (policy === 'on-failure' && outcome.exit_code === 0)) return null;
    if (outcome.restart_count >= max_restarts) return null;
    if (outcome.uptime_ms >= RESTART_RESET_MS) this.#failures_in_a_row = 0;
    const { backoff_ms: first_ms = RESTART_BACKOFF_FIRST_MS } = this.#options;
    const is_first = this.#failures_in_a_row === 0;
    const doubled_ms = Math.max(first_ms, GROWTH_MIN_MS) * 2 ** this.#failures_in_a_row;
    const delay_ms = is_first ? first_ms : Math.min(doubled_ms, Math.max(first_ms, RESTART_BACKOFF_CAP_MS));
    this.#failures_in_a_row += 1;
    return delay_ms * (1 + RESTART_JITTER * (2 * this.#random() - 1));
  }
}
