import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenPool } from '../../../src/network/meter/token-pool.ts';

const MB = 1_000_000;

/** The authority's answer. */
const lent = (delay_ms: number) => ({ outcome: 'reserved' as const, delay_ms });

/** A pool whose requests are kept. */
function pool(bytes_per_second: number | null, is_fail_open = false) {
  const reserved: number[] = [];
  const returned: number[] = [];
  const rate = bytes_per_second === null ? null : { bytes_per_second, version: 1 };
  const requests = { reserve: (n: number) => reserved.push(n), giveBack: (n: number) => returned.push(n) };
  return { pool: new TokenPool(rate, requests, is_fail_open), reserved, returned };
}

describe('a pool of leased tokens', () => {
  it('asks for a block of 20 ms between 64 KiB and 1 MiB, and of 100 ms where the limit is slow', () => {
    const blocks = [10 * MB, MB, 1_000 * MB, 1_000, 100].map((rate) => {
      const { pool: made, reserved } = pool(rate);
      made.has(60, 1);
      return reserved[0];
    });
    expect(blocks).toEqual([200_000, 65_536, 1_048_576, 100, 60]);
  });

  it('uses a block only when the delay is over', () => {
    const { pool: made } = pool(10 * MB);
    expect(made.has(1_500, 1_000)).toBe('asking');
    made.answer(lent(5), 2_000);
    expect(made.has(1_500, 6_999)).toBe('no');
    expect(made.wake_us).toBe(7_000);
    expect(made.has(1_500, 7_000)).toBe('yes');
  });

  it('asks for the next block at half, once', () => {
    const { pool: made, reserved } = pool(10 * MB);
    made.has(1, 1);
    made.answer(lent(0), 1);
    made.has(60_000, 2);
    made.take(60_000, 2);
    expect(reserved).toHaveLength(1);
    made.has(60_000, 3);
    made.take(60_000, 3);
    made.has(60_000, 4);
    made.has(60_000, 5);
    expect(reserved).toEqual([200_000, 200_000]);
  });

  it('gives back what nobody used for a second', () => {
    const { pool: made, returned } = pool(10 * MB);
    made.has(1, 1);
    made.answer(lent(0), 1);
    made.take(1, 1);
    expect(made.wake_us).toBe(1_000_001);
    made.tick(1_000_000);
    expect(returned).toEqual([]);
    made.tick(1_000_001);
    expect(returned).toEqual([199_999]);
    expect(made.is_at_rest).toBe(true);
    expect(made.has(1, 1_000_002)).toBe('asking');
  });

  it('lets nothing pass while the authority cannot be reached, and asks again after 50 ms', () => {
    const { pool: made, reserved } = pool(10 * MB);
    made.has(60, 1);
    made.answer({ outcome: 'unreachable' }, 1_000);
    expect(made.has(60, 1_001)).toBe('no');
    expect(reserved).toHaveLength(1);
    expect(made.wake_us).toBe(51_000);
    // Nobody waits for this answer: the last one was none.
    expect(made.has(60, 51_000)).toBe('no');
    expect(reserved).toHaveLength(2);
    made.answer(lent(0), 52_000);
    expect(made.has(60, 52_000)).toBe('yes');
  });

  it('lets everything pass then, and counts it, where quotas fail open', () => {
    const { pool: made } = pool(10 * MB, true);
    made.has(60, 1);
    made.answer({ outcome: 'unreachable' }, 1_000);
    expect(made.has(60, 1_001)).toBe('yes');
    expect(made.take(60, 1_001)).toBe(60);
    made.has(60, 51_000);
    made.answer(lent(0), 51_000);
    expect(made.take(60, 51_000)).toBe(0);
  });

  it('asks again where the authority grants nothing, and never fails open for it', () => {
    const { pool: made, reserved } = pool(10 * MB, true);
    made.has(60, 1);
    made.answer({ outcome: 'refused' }, 1_000);
    expect(made.has(60, 50_999)).toBe('no');
    expect(made.has(60, 51_000)).toBe('asking');
    expect(reserved).toHaveLength(2);
  });

  it('gives back what it would have waited for under an earlier limit', () => {
    const { pool: made, reserved, returned } = pool(1_000);
    made.has(60_000, 1);
    made.answer(lent(60_000), 1);
    made.change({ bytes_per_second: 10 * MB, version: 2 });
    expect(returned).toEqual([60_000]);
    made.has(60_000, 2);
    expect(reserved).toEqual([60_000, 200_000]);
  });

  it('lets nothing pass at a limit of 0, and everything without one', () => {
    expect(pool(0).pool.has(1, 1)).toBe('no');
    const { pool: free, reserved } = pool(null);
    expect(free.has(10 ** 9, 1)).toBe('yes');
    free.take(10 ** 9, 1);
    expect(reserved).toEqual([]);
  });

  it('never lets more pass than was reserved and not given back, nor holds more than a block beside half of one or a packet', () => {
    const steps = fc.array(
      fc.record({
        after_us: fc.nat(400_000),
        bytes: fc.integer({ min: 20, max: 65_535 }),
        answer_ms: fc.option(fc.nat(300)),
      }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 * MB }), steps, (rate, all) => {
        const { pool: made, reserved, returned } = pool(rate);
        const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
        let now_us = 1;
        let passed = 0;
        let answered = 0;
        for (const { after_us, bytes, answer_ms } of all) {
          now_us += after_us;
          made.tick(now_us);
          if (made.has(bytes, now_us) === 'yes') {
            expect(made.take(bytes, now_us)).toBe(0);
            passed += bytes;
          }
          if (reserved.length > answered && answer_ms !== null) {
            answered += 1;
            made.answer(lent(answer_ms), now_us);
          }
          const largest = Math.max(...reserved, 0);
          expect(made.tokens).toBeLessThanOrEqual(largest + Math.max(largest / 2, 65_535));
          expect(passed + made.tokens).toBeLessThanOrEqual(sum(reserved.slice(0, answered)) - sum(returned));
        }
      }),
    );
  });
});
