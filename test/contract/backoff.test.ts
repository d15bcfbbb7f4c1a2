import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Backoff, backoffMs } from '../../src/contract/backoff.ts';

const backoffs: fc.Arbitrary<Required<Backoff>> = fc.record({
  base_ms: fc.integer({ min: 1, max: 60_000 }),
  factor: fc.constantFrom(1, 2, 3),
  max_ms: fc.integer({ min: 60_000, max: 3_600_000 }),
  jitter: fc.double({ min: 0, max: 0.9, noNaN: true }),
});
const attempts = fc.integer({ min: 1, max: 5_000 });
const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('backoff', () => {
  it('doubles from the first wait up to the longest', () => {
    const waits = [1, 2, 3, 4, 5, 6].map((attempt) => backoffMs(attempt, { base_ms: 500, max_ms: 6_000 }));
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 6_000, 6_000]);
  });

  it('spreads a wait around its length, by the jitter at most', () => {
    const backoff = { base_ms: 1_000, max_ms: 8_000, jitter: 0.25 };
    expect([0, 0.5, 1].map((random) => backoffMs(1, backoff, random))).toEqual([750, 1_000, 1_250]);
    expect(backoffMs(9, backoff, 1)).toBe(10_000);
  });

  it('never shrinks with a further failure, and is finite however many there were', () => {
    fc.assert(
      fc.property(backoffs, attempts, randoms, (backoff, attempt, random) => {
        const wait_ms = backoffMs(attempt, backoff, random);
        expect(backoffMs(attempt + 1, backoff, random)).toBeGreaterThanOrEqual(wait_ms);
        expect(wait_ms).toBeLessThanOrEqual(backoff.max_ms * (1 + backoff.jitter));
        expect(wait_ms).toBeGreaterThan(0);
      }),
    );
  });

  it('is exact without jitter', () => {
    fc.assert(
      fc.property(
        backoffs,
        fc.integer({ min: 1, max: 30 }),
        randoms,
        ({ base_ms, max_ms }, attempt, random) => {
          const wait_ms = Math.min(base_ms * 2 ** (attempt - 1), max_ms);
          expect(backoffMs(attempt, { base_ms, max_ms }, random)).toBe(wait_ms);
        },
      ),
    );
  });
});
