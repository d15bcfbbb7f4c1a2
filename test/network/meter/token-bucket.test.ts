import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BURST_MIN_BYTES } from '../../../src/contract/network.ts';
import { burstOf, TokenBucket } from '../../../src/network/meter/token-bucket.ts';

const limits = fc.record({
  bytes_per_second: fc.oneof(
    fc.nat(2_000),
    fc.integer({ min: 1, max: 2 ** 34 }),
    fc.maxSafeInteger().map(Math.abs),
  ),
  burst_bytes: fc.oneof(fc.constant(0), fc.nat(200_000), fc.maxSafeInteger().map(Math.abs)),
});
const steps = fc.array(
  fc.record({
    after_us: fc.oneof(fc.nat(50), fc.nat(5_000_000)),
    bytes: fc.integer({ min: 20, max: 65_535 }),
  }),
  { maxLength: 200 },
);

describe('a bucket of a sandbox', () => {
  it('never lets more pass than its burst and its rate over time, from whenever on', () => {
    fc.assert(
      fc.property(limits, steps, (limit, all) => {
        let now_us = 1_000_000;
        const bucket = new TokenBucket(limit, now_us);
        const burst = BigInt(burstOf(limit)) * 1_000_000n;
        // What would be in a bucket that only leaks.
        let level = 0n;
        for (const { after_us, bytes } of all) {
          now_us += after_us;
          const leaked = level - BigInt(limit.bytes_per_second) * BigInt(after_us);
          level = leaked > 0n ? leaked : 0n;
          if (!bucket.has(bytes, now_us)) continue;
          bucket.take(bytes);
          level += BigInt(bytes) * 1_000_000n;
          // A full bucket drops the part of a token that was under way.
          expect(level).toBeLessThan(burst + 1_000_000n);
        }
      }),
    );
  });

  it('loses no token, however often it is asked', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 34 }),
        fc.array(fc.integer({ min: 1, max: 1_000 })),
        (rate, waits) => {
          const bucket = new TokenBucket({ bytes_per_second: rate, burst_bytes: 2 ** 50 }, 5);
          bucket.take(2 ** 50);
          let now_us = 5;
          for (const wait_us of waits) {
            now_us += wait_us;
            bucket.has(2 ** 50, now_us);
          }
          expect(BigInt(bucket.tokens)).toBe((BigInt(rate) * BigInt(now_us - 5)) / 1_000_000n);
        },
      ),
    );
  });

  it('tells when a packet will have its tokens', () => {
    fc.assert(
      fc.property(limits, fc.integer({ min: 1, max: 65_535 }), fc.nat(10 ** 7), (limit, bytes, later_us) => {
        const bucket = new TokenBucket(limit, 1);
        bucket.take(bucket.tokens);
        const wait_us = bucket.waitUs(bytes, 1 + later_us);
        if (limit.bytes_per_second === 0) expect(wait_us).toBe(Number.POSITIVE_INFINITY);
        else expect(bucket.has(bytes, 1 + later_us + wait_us)).toBe(true);
      }),
    );
  });

  it('raises a burst below one packet, and takes one second where none is given', () => {
    expect(burstOf({ bytes_per_second: 10, burst_bytes: 20 })).toBe(BURST_MIN_BYTES);
    expect(burstOf({ bytes_per_second: 100_000, burst_bytes: 0 })).toBe(100_000);
    expect(burstOf({ bytes_per_second: 10, burst_bytes: 70_000 })).toBe(70_000);
  });

  it('goes on from where an earlier one stopped', () => {
    const state = new Float64Array(3);
    const limit = { bytes_per_second: 1_000, burst_bytes: 100_000 };
    new TokenBucket(limit, 1_000_000, state).take(100_000);
    const second = new TokenBucket(limit, 3_000_000, state);
    expect(second.has(2_000, 3_000_000)).toBe(true);
    expect(second.has(2_001, 3_000_000)).toBe(false);
  });

  it('keeps what it holds under another limit, up to the new burst', () => {
    const bucket = new TokenBucket({ bytes_per_second: 1_000, burst_bytes: 200_000 }, 1);
    bucket.change({ bytes_per_second: 50, burst_bytes: 100_000 }, 1);
    expect(bucket.tokens).toBe(100_000);
    bucket.take(100_000);
    bucket.change({ bytes_per_second: 0, burst_bytes: 100_000 }, 1);
    expect(bucket.has(1, 10 ** 12)).toBe(false);
  });
});
