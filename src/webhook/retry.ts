import { type Backoff, backoffMs } from '../contract/backoff.ts';
import {
  BACKOFF_CAP_MS,
  BACKOFF_FACTOR,
  BACKOFF_FIRST_MS,
  BACKOFF_JITTER,
  ENDPOINT_BACKOFF_CAP_MS,
  RETRY_AFTER_CAP_MS,
} from '../contract/defaults.ts';
import type { AttemptError, FinalState, WebhookRetry } from '../contract/words.ts';

const BACKOFF: Backoff = {
  base_ms: BACKOFF_FIRST_MS,
  factor: BACKOFF_FACTOR,
  max_ms: BACKOFF_CAP_MS,
  jitter: BACKOFF_JITTER,
};

/** The result of one attempt: a status, or the error that prevented one. Exactly one of the two is null. */
export interface AttemptResult {
  status: number | null;
  error: AttemptError | null;
  /** Why it failed, in one line; null for a success. See `error-detail.ts`. */
  error_detail: string | null;
  /** The `Retry-After` header as it was received, or null. */
  retry_after: string | null;
  /** The first 1 KiB of the response's body, or null where there was none. */
  response_body: string | null;
}

/** When an attempt began and ended and when its record's window ends, in ms of one clock. */
export interface AttemptTimes {
  started_ms: number;
  ended_ms: number;
  deadline_ms: number;
}

/** The status by which a receiver says that it wants no more of an event: it is never tried again. */
const GONE = 410;

/** The state of a record after an attempt. `due_ms`: its next attempt; `probe_ms`: when it may be the endpoint's probe. */
export type Decision = { state: FinalState } | { state: 'pending'; due_ms: number; probe_ms: number };

/**
 * Decides a record's state after an attempt. Pure. Source: contract section 3, Success to Window.
 * `failures` counts the failed attempts of this window, this one included; `random` is in [0, 1);
 * `retry_after_ms` is the wait that the receiver asked for, or 0; `retry`: which statuses are tried again.
 */
export function decide(
  result: AttemptResult,
  times: AttemptTimes,
  failures: number,
  retry_after_ms: number,
  random: number,
  retry: WebhookRetry,
): Decision {
  const { status } = result;
  if (status !== null && isSuccess(status)) return { state: 'delivered' };
  if (status !== null && !isTransient(status) && (retry === 'transient' || status === GONE)) {
    return { state: 'failed' };
  }
  // The one last attempt is the one that starts when the window is over.
  if (times.started_ms >= times.deadline_ms) return { state: 'expired' };
  return { state: 'pending', ...dueTimes(times, failures, retry_after_ms, random) };
}

/** When a record is due again after a failed attempt, and when it may be the endpoint's probe; see `decide`. Pure. */
function dueTimes(
  { ended_ms, deadline_ms }: AttemptTimes,
  failures: number,
  retry_after_ms: number,
  random: number,
): { due_ms: number; probe_ms: number } {
  const backoff_ms = Math.round(backoffMs(failures, BACKOFF, random));
  const asked_ms = Math.min(retry_after_ms, RETRY_AFTER_CAP_MS);
  const after = (delay_ms: number) => Math.min(ended_ms + delay_ms, deadline_ms);
  return {
    due_ms: after(Math.max(backoff_ms, asked_ms)),
    probe_ms: after(Math.max(Math.min(backoff_ms, ENDPOINT_BACKOFF_CAP_MS), asked_ms)),
  };
}

/** What a finished attempt says about the endpoint; `refused`: it answers, with a terminal status; `nothing`: 408 and 425. */
export type Verdict = 'up' | 'down' | 'refused' | 'nothing';

/** The verdict of a result about the endpoint as a whole. Source: contract section 3, Endpoint down, Endpoint that refuses. */
export function endpointVerdict({ status }: AttemptResult): Verdict {
  if (status === null || status === 429 || isServerError(status)) return 'down';
  if (isSuccess(status)) return 'up';
  return isTransient(status) ? 'nothing' : 'refused';
}

/** The wait before the endpoint's next probe in ms, after `failed_probes` failures; `random` is in [0, 1). */
export function endpointBackoffMs(failed_probes: number, random: number): number {
  return Math.min(Math.round(backoffMs(failed_probes + 1, BACKOFF, random)), ENDPOINT_BACKOFF_CAP_MS);
}

/** The wait that a `Retry-After` value asks for, in ms: seconds or an HTTP date; 0 for anything else or the past. */
export function retryAfterMs(value: string | null, wall_ms: number): number {
  if (value === null) return 0;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // The three date forms of HTTP all begin with the name of a day.
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return 0;
  const at_ms = Date.parse(/GMT$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at_ms) ? 0 : Math.max(0, at_ms - wall_ms);
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function isTransient(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || isServerError(status);
}

function isServerError(status: number): boolean {
  return status >= 500 && status < 600;
}
