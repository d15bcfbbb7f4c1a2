import type { Dimension, RatePolicy } from '../../contract/quotas.ts';
import { type Bucket, waitMs } from './bucket.ts';

/** What one bucket is for; the region is the authority's, and the cluster is no part of it. */
export interface BucketName {
  team_id: string;
  dimension: Dimension;
}

export interface Drawn {
  outcome: 'admitted' | 'refused';
  /** Tokens left. */
  remaining: number;
  /** Until one more token is there; 0 while the bucket is full. */
  next_token_ms: number;
  /** Until the request could be admitted; 0 where it was. */
  retry_after_ms: number;
  /** The authority's time of the decision, from an origin of its own. */
  decided_at_ms: number;
}

/** The authority does not answer: whoever asked decides whether that closes or opens. */
export interface Unreachable {
  outcome: 'unreachable';
  reason: string;
}

export type RateDecision = Drawn | Unreachable;

/**
 * Where rate quotas are decided: every draw is one atomic step on the authority's own clock.
 * Source: contract section 7, "Token bucket".
 */
export interface RateAuthority {
  /** As `/readyz` tells it. */
  readonly kind: 'process' | 'redis';
  /** Whether it answered when it was last heard of. */
  readonly is_reachable: boolean;
  /** Draws `requested` tokens under `policy`, all or none. Never rejects. */
  draw(name: BucketName, policy: RatePolicy, requested: number): Promise<RateDecision>;
  close(): Promise<void>;
}

/** What a draw is told as. Where no wait helps, asking again makes sense once an interval has passed at the earliest. */
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
