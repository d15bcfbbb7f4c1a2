import type { RatePolicy } from '../../contract/quotas.ts';
import type { Dimension } from '../../contract/words.ts';
import { type Bucket, waitMs } from './bucket.ts';

/** Identifies a bucket within the authority's region. Clusters of a region share it. */
export interface BucketName {
  team_id: string;
  /** `transfer_bytes`: of `--team-transfer-rate`, which is no quota. */
  dimension: Dimension | 'transfer_bytes';
}

/** The decision on a draw. Times are whole milliseconds. */
export interface Drawn {
  outcome: 'admitted' | 'refused';
  /** Tokens left. */
  remaining: number;
  /** Time until the next token; 0 while the bucket is full. */
  next_token_ms: number;
  /** Time until the request could be admitted; 0 if it was. */
  retry_after_ms: number;
  /** The authority's time of the decision; its origin is the authority's own. */
  decided_at_ms: number;
}

/** The authority does not answer. The caller decides whether to fail closed or open. */
export interface Unreachable {
  outcome: 'unreachable';
  reason: string;
}

/** The answer to a reservation. */
export interface Reserved {
  outcome: 'reserved' | 'refused';
  /** Whole milliseconds from the answer until the bucket has gained what was reserved, rounded up. */
  delay_ms: number;
}

/** The result of a draw. */
export type RateDecision = Drawn | Unreachable;

/**
 * Decides on rate quotas: every draw is one atomic step on the authority's own clock.
 * Source: contract section 7, "Token bucket".
 */
export interface RateAuthority {
  /** As reported by `/readyz`. */
  readonly kind: 'process' | 'redis';
  /** Whether the last request to it was answered. */
  readonly is_reachable: boolean;
  /** Draws `requested` tokens under `policy`, all or none. Never rejects. */
  draw(name: BucketName, policy: RatePolicy, requested: number): Promise<RateDecision>;
  /**
   * Takes tokens also from what the bucket will gain, for all callers one after the other; a negative number gives
   * back. Refused under a limit of 0. Never rejects.
   */
  reserve(name: BucketName, policy: RatePolicy, requested: number): Promise<Reserved | Unreachable>;
  /** Disconnects. */
  close(): Promise<void>;
}

/** How far reservations may run ahead of a bucket: each node waits for one block before it asks for the next. */
export const DEBT_MAX = 2 ** 40;

/** The answer from a bucket after a reservation. */
export function reservedFrom(bucket: Bucket, is_admitted: boolean): Reserved {
  const delay_ms = waitMs(bucket, 0) ?? bucket.interval_ms;
  return { outcome: is_admitted ? 'reserved' : 'refused', delay_ms };
}

/** The decision from a bucket after a draw. If no wait can help, `retry_after_ms` is one interval. */
export function drawn(bucket: Bucket, is_admitted: boolean, requested: number): Drawn {
  const { limit_value, tokens, interval_ms, burst_value } = bucket;
  return {
    outcome: is_admitted ? 'admitted' : 'refused',
    remaining: limit_value === 0 ? 0 : tokens,
    next_token_ms: tokens === burst_value ? 0 : (waitMs(bucket, tokens + 1) ?? interval_ms),
    retry_after_ms: is_admitted ? 0 : (waitMs(bucket, requested) ?? interval_ms),
    decided_at_ms: bucket.updated_ms,
  };
}
