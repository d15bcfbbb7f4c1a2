import { backoffMs } from '../contract/backoff.ts';
import type { SandboxdError } from './error.ts';

/** How failed calls are repeated. */
export interface RetryPolicy {
  /** How often a call is repeated at most; 0 is never. Default 3. */
  retries: number;
  /** The wait before the first repetition; it doubles each time, up to 10 s, and half of it is random. Default 250. */
  backoff_ms: number;
}

export const DEFAULT_RETRY: RetryPolicy = { retries: 3, backoff_ms: 250 };

const BACKOFF_MAX_MS = 10_000;
/** Who is asked to wait for longer than this is told, rather than kept. */
const RETRY_AFTER_MAX_MS = 60_000;

/** Statuses of proxies and of programs that are about to start or to end. */
const TRANSIENT = new Set([502, 503, 504]);
/** What another attempt finds unchanged, unless the server says when. */
const LASTING = new Set(['capacity_exhausted', 'quota_exceeded', 'too_many_requests', 'bad_gateway']);

/** A failed attempt of a call that may be repeated without doing anything twice. */
export interface FailedAttempt {
  error: SandboxdError;
  /** From 1. */
  attempt: number;
  /** The call carries a key that nobody else has: a conflict is with its own first attempt, which is in progress. */
  has_own_key: boolean;
}

/** How long to wait before the next attempt, in ms; null where there is none. `random` is from 0 to 1. */
export function delayBeforeRetry(
  { error, attempt, has_own_key }: FailedAttempt,
  { retries, backoff_ms }: RetryPolicy,
  random: number,
): number | null {
  if (attempt > retries || !isTransient(error, attempt, has_own_key)) return null;
  const wait_ms = backoffMs(attempt, { base_ms: backoff_ms, max_ms: BACKOFF_MAX_MS }) * (0.5 + random / 2);
  const { retry_after_ms } = error;
  if (retry_after_ms === null) return wait_ms;
  return retry_after_ms > RETRY_AFTER_MAX_MS ? null : Math.max(retry_after_ms, wait_ms);
}

function isTransient({ code, status, retry_after_ms }: SandboxdError, attempt: number, own_key: boolean) {
  if (code === 'unreachable') return true;
  if (code === 'conflict') return own_key && attempt > 1;
  if (retry_after_ms !== null) return status === 429 || TRANSIENT.has(status);
  return TRANSIENT.has(status) && !LASTING.has(code);
}
