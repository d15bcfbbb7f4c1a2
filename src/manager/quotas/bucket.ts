import { added, divided, share } from '../../base/exact.ts';
import type { RatePolicy } from '../../contract/quotas.ts';

/** A token bucket at `updated_ms`, with the policy that held then. Source: contract section 7, "Token bucket". */
export interface Bucket {
  /** An integer up to `burst_value`; below 0 where more was reserved than there was. */
  tokens: number;
  /** The part of the next token that has accrued, in units of 1/`interval_ms`; 0 while the bucket is full. */
  remainder: number;
  updated_ms: number;
  limit_value: number;
  interval_ms: number;
  burst_value: number;
}

/** The bucket after a draw, and whether the draw was admitted. */
export interface DrawResult {
  bucket: Bucket;
  is_admitted: boolean;
}

/** A full bucket. */
export function fullBucket(policy: RatePolicy, now_ms: number): Bucket {
  const { limit_value, interval_ms, burst_value } = policy;
  return { tokens: burst_value, remainder: 0, updated_ms: now_ms, limit_value, interval_ms, burst_value };
}

/**
 * Draws `requested` tokens, all or none: refills the bucket, adopts a changed policy, decides. Without a bucket the
 * draw is from a full one. A reservation may leave it `debt_max` tokens below 0; a negative number gives tokens back.
 * The script in bucket-script.ts computes the same.
 */
export function draw(
  bucket: Bucket | null,
  policy: RatePolicy,
  requested: number,
  now_ms: number,
  debt_max = 0,
): DrawResult {
  const filled = bucket ? adopted(refilled(bucket, now_ms), policy) : fullBucket(policy, now_ms);
  const is_admitted = requested < 0 || (policy.limit_value > 0 && filled.tokens >= requested - debt_max);
  if (is_admitted) filled.tokens = Math.min(policy.burst_value, filled.tokens - requested);
  if (filled.tokens === policy.burst_value) filled.remainder = 0;
  return { bucket: filled, is_admitted };
}

/** The bucket at `now_ms`. A clock that went back adds no tokens, and refills continue from the earlier time. */
export function refilled(bucket: Bucket, now_ms: number): Bucket {
  const { tokens, remainder, updated_ms, limit_value, interval_ms, burst_value } = bucket;
  const room = burst_value - tokens;
  const elapsed = divided(Math.max(0, now_ms - updated_ms), interval_ms);
  if (room === 0 || elapsed.whole * limit_value >= room) return fullBucket(bucket, now_ms);
  const part = added(
    share(elapsed.rest, limit_value, interval_ms),
    { whole: 0, rest: remainder },
    interval_ms,
  );
  const gained = elapsed.whole * limit_value + part.whole;
  if (gained >= room) return fullBucket(bucket, now_ms);
  return {
    tokens: tokens + gained,
    remainder: part.rest,
    updated_ms: now_ms,
    limit_value,
    interval_ms,
    burst_value,
  };
}

/** The bucket under another policy: it keeps its debt, or its relative fill, in whole tokens. One without a size starts full. */
function adopted(bucket: Bucket, policy: RatePolicy): Bucket {
  const { limit_value, interval_ms, burst_value } = policy;
  if (
    bucket.limit_value === limit_value &&
    bucket.interval_ms === interval_ms &&
    bucket.burst_value === burst_value
  ) {
    return bucket;
  }
  if (bucket.burst_value === 0 && bucket.tokens === 0) return fullBucket(policy, bucket.updated_ms);
  const has_debt = bucket.tokens < 0;
  const tokens = has_debt ? bucket.tokens : share(bucket.tokens, burst_value, bucket.burst_value).whole;
  return { tokens, remainder: 0, updated_ms: bucket.updated_ms, limit_value, interval_ms, burst_value };
}

/** Milliseconds until the bucket holds `wanted` tokens, rounded up; null if it never will. */
export function waitMs(bucket: Bucket, wanted: number): number | null {
  const { tokens, remainder, limit_value, interval_ms, burst_value } = bucket;
  if (limit_value === 0 || wanted > burst_value) return null;
  if (tokens >= wanted) return 0;
  const missing = divided(wanted - tokens, limit_value);
  const part = share(missing.rest, interval_ms, limit_value);
  // Rounded up, minus the part of the next token that has already accrued.
  const last = part.rest > remainder ? 1 : -divided(remainder - part.rest, limit_value).whole;
  return Math.min(Number.MAX_SAFE_INTEGER, missing.whole * interval_ms + part.whole + last);
}
