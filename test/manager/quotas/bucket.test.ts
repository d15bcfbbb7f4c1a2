import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RatePolicy } from '../../../src/contract/quotas.ts';
import { type Bucket, draw, fullBucket, refilled, waitMs } from '../../../src/manager/quotas/bucket.ts';

const policyOf = (limit_value: number, interval_ms: number, burst_value: number): RatePolicy => ({
  limit_value,
  interval_ms,
  burst_value,
});

const small = fc.integer({ min: 1, max: 50 });
const policies = fc
  .tuple(small, fc.integer({ min: 1, max: 3_000 }), small)
  .map(([limit_value, interval_ms, burst_value]) => policyOf(limit_value, interval_ms, burst_value));

const SIMULATED_MS = 60_000;

/** Random load over 60 s: gaps and sizes of draws. */
const loads = fc.array(fc.tuple(fc.nat(400), fc.integer({ min: 1, max: 8 })), {
  minLength: 1,
  maxLength: 400,
});

describe('a bucket', () => {
  it('admits at most its burst and what came in, to the token, and everything of it to whoever wants it', () => {
    fc.assert(
      fc.property(policies, loads, (policy, load) => {
        let bucket: Bucket = fullBucket(policy, 0);
        let now_ms = 0;
        let admitted = 0;
        for (const [gap_ms, wanted] of load) {
          now_ms = Math.min(SIMULATED_MS, now_ms + gap_ms);
          // Whoever wants more than is there comes down to what is there: nothing that is allowed is left.
          for (let requested = wanted; requested > 0; ) {
            const step = draw(bucket, policy, requested, now_ms);
            bucket = step.bucket;
            if (step.is_admitted) admitted += requested;
            requested = step.is_admitted ? 0 : Math.min(requested - 1, bucket.tokens);
          }
          const refill = Math.floor((policy.limit_value * now_ms) / policy.interval_ms);
          expect(admitted).toBeLessThanOrEqual(policy.burst_value + refill);
        }
      }),
    );
  });

  it('gives a caller who always asks its burst and all that comes in over 60 s, whatever the steps of time', () => {
    fc.assert(
      fc.property(policies, fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1 }), (policy, gaps) => {
        let bucket: Bucket = fullBucket(policy, 0);
        let admitted = 0;
        let lost_to_a_full_bucket = false;
        for (let now_ms = 0, i = 0; now_ms <= SIMULATED_MS; now_ms += gaps[i++ % gaps.length] as number) {
          const before = refilled(bucket, now_ms);
          lost_to_a_full_bucket ||= now_ms > 0 && before.tokens === policy.burst_value;
          for (;;) {
            const step = draw(bucket, policy, 1, now_ms);
            bucket = step.bucket;
            if (!step.is_admitted) break;
            admitted += 1;
          }
          if (lost_to_a_full_bucket) continue;
          expect(admitted).toBe(
            policy.burst_value + Math.floor((policy.limit_value * now_ms) / policy.interval_ms),
          );
        }
      }),
    );
  });

  it('comes to the same whether time passes in one step or in many', () => {
    fc.assert(
      fc.property(policies, fc.array(fc.nat(200)), fc.nat(50), (policy, gaps, used) => {
        const start = { ...fullBucket(policy, 0), tokens: Math.max(0, policy.burst_value - used) };
        let now_ms = 0;
        let stepped = start;
        for (const gap_ms of gaps) {
          now_ms += gap_ms;
          stepped = refilled(stepped, now_ms);
        }
        expect(stepped).toEqual(refilled(start, now_ms));
      }),
    );
  });

  it('says to the millisecond when it will admit', () => {
    fc.assert(
      fc.property(policies, fc.nat(5_000), fc.integer({ min: 1, max: 50 }), (policy, idle_ms, wanted) => {
        const empty = { ...fullBucket(policy, 0), tokens: 0 };
        const bucket = refilled(empty, idle_ms);
        const wait_ms = waitMs(bucket, wanted);
        expect(wait_ms === null).toBe(wanted > policy.burst_value);
        if (wait_ms === null) return;
        expect(draw(bucket, policy, wanted, idle_ms + wait_ms).is_admitted).toBe(true);
        if (wait_ms > 0) expect(draw(bucket, policy, wanted, idle_ms + wait_ms - 1).is_admitted).toBe(false);
      }),
    );
  });

  it('is exact at the ends of what a policy may hold', () => {
    const most = Number.MAX_SAFE_INTEGER;
    const policy = policyOf(most, most - 1, most);
    const empty = { ...fullBucket(policy, 0), tokens: 0 };
    // Every millisecond brings one token and (2⁵³ − 1) ÷ (2⁵³ − 2) − 1 of the next.
    expect(refilled(empty, 7)).toMatchObject({ tokens: 7, remainder: 7 });
    expect(refilled(empty, most - 1)).toMatchObject({ tokens: most, remainder: 0 });
    expect(waitMs(empty, 1)).toBe(1);
    expect(waitMs({ ...empty, limit_value: 1 }, most)).toBe(most);
  });

  it('admits nothing under a limit of 0, and has what it had once that is lifted', () => {
    const policy = policyOf(5, 1_000, 5);
    let { bucket } = draw(null, policy, 2, 0);
    let step = draw(bucket, { ...policy, limit_value: 0 }, 1, 0);
    expect(step.is_admitted).toBe(false);
    expect(waitMs(step.bucket, 1)).toBeNull();
    bucket = step.bucket;
    step = draw(bucket, policy, 3, 60_000);
    expect(step).toMatchObject({ is_admitted: true, bucket: { tokens: 0 } });
  });

  it('keeps its fill in whole tokens under another policy and drops the token under way', () => {
    const old = policyOf(3, 1_000, 10);
    const part = { ...fullBucket(old, 0), tokens: 7, remainder: 999 };
    expect(draw(part, policyOf(3, 1_000, 5), 1, 0).bucket).toMatchObject({ tokens: 2, remainder: 0 });
    expect(draw(part, policyOf(3, 1_000, 25), 1, 0).bucket).toMatchObject({ tokens: 16, remainder: 0 });
    expect(draw(part, policyOf(9, 2_000, 10), 1, 0).bucket).toMatchObject({ tokens: 6, remainder: 0 });
    // What came in until then came in at the old rate.
    expect(draw(part, policyOf(9, 2_000, 20), 1, 1).bucket).toMatchObject({ tokens: 15, remainder: 0 });
    expect(draw(fullBucket(old, 0), policyOf(1, 1, Number.MAX_SAFE_INTEGER), 1, 0).bucket).toMatchObject({
      tokens: Number.MAX_SAFE_INTEGER - 1,
    });
  });

  it('neither fills nor stalls when its clock goes back', () => {
    const policy = policyOf(10, 1_000, 10);
    let step = draw(null, policy, 10, 3_600_000);
    step = draw(step.bucket, policy, 1, 0);
    expect(step.is_admitted).toBe(false);
    expect(draw(step.bucket, policy, 1, 100).is_admitted).toBe(true);
  });
});
