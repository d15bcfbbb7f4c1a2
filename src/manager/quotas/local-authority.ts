import type { Clock } from '../../base/clock.ts';
import type { RatePolicy } from '../../contract/quotas.ts';
import { DIMENSIONS } from '../../contract/words.ts';
import { type Bucket, draw, refilled } from './bucket.ts';
import {
  type BucketName,
  DEBT_MAX,
  drawn,
  type RateAuthority,
  type RateDecision,
  type Reserved,
  reservedFrom,
} from './rate-authority.ts';

/** The first number of buckets at which full ones are dropped. */
const SWEEP_BUCKETS = 4_096;

/** Rate quotas in the memory of this process, for a single replica. A restart fills every bucket. */
export class LocalAuthority implements RateAuthority {
  readonly kind = 'process';
  readonly is_reachable = true;
  readonly #clock: Clock;
  readonly #buckets = new Map(
    [...DIMENSIONS, 'transfer_bytes' as const].map((dimension) => [dimension, new Map<string, Bucket>()]),
  );
  #sweep_at = SWEEP_BUCKETS;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Draws tokens from a team's bucket; never rejects, and is never `unreachable`. */
  async draw(name: BucketName, policy: RatePolicy, requested: number): Promise<RateDecision> {
    const { bucket, is_admitted } = this.#step(name, policy, requested, 0);
    return drawn(bucket, is_admitted, requested);
  }

  /** Reserves tokens of a team's bucket; never rejects, and is never `unreachable`. */
  async reserve(name: BucketName, policy: RatePolicy, requested: number): Promise<Reserved> {
    const { bucket, is_admitted } = this.#step(name, policy, requested, DEBT_MAX);
    return reservedFrom(bucket, is_admitted);
  }

  /** The number of buckets in memory. */
  get buckets(): number {
    return [...this.#buckets.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Drops every bucket. */
  async close(): Promise<void> {
    for (const buckets of this.#buckets.values()) buckets.clear();
  }

  #step({ team_id, dimension }: BucketName, policy: RatePolicy, requested: number, debt_max: number) {
    const now_ms = Math.floor(this.#clock.monotonicMs());
    const buckets = this.#buckets.get(dimension) as Map<string, Bucket>;
    const result = draw(buckets.get(team_id) ?? null, policy, requested, now_ms, debt_max);
    buckets.set(team_id, result.bucket);
    if (buckets.size > this.#sweep_at) this.#sweep(now_ms);
    return result;
  }

  /** Drops full buckets: a missing bucket counts as full. */
  #sweep(now_ms: number): void {
    for (const buckets of this.#buckets.values()) {
      for (const [team_id, bucket] of buckets) {
        const { tokens, burst_value } = refilled(bucket, now_ms);
        if (tokens === burst_value) buckets.delete(team_id);
      }
    }
    this.#sweep_at = Math.max(SWEEP_BUCKETS, this.buckets * 2);
  }
}
