import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QuotaByteAuthority } from '../../../src/manager/quotas/byte-authority.ts';
import { LocalAuthority } from '../../../src/manager/quotas/local-authority.ts';
import { TokenPool } from '../../../src/network/meter/token-pool.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MB = 1_000_000;

/** A node with a pool of one team's egress over a shared authority. */
function nodeOf(authority: QuotaByteAuthority, clock: ManualClock, limit_value: number, burst_value: number) {
  const policy = { limit_value, interval_ms: 1_000, burst_value };
  const now_us = () => Math.floor(clock.monotonicMs() * 1_000);
  const pool: TokenPool = new TokenPool(
    { bytes_per_second: limit_value, version: 1 },
    {
      reserve: (bytes) =>
        void authority
          .reserve('team', 'egress', policy, bytes)
          .then((reservation) => pool.answer(reservation, now_us())),
      giveBack: (bytes) => authority.giveBack('team', 'egress', policy, bytes),
    },
    false,
  );
  let passed = 0;
  return {
    /** Passes packets until there are no tokens. */
    drain(length: number) {
      pool.tick(now_us());
      while (pool.has(length, now_us()) === 'yes') {
        pool.take(length, now_us());
        passed += length;
      }
    },
    passed: () => passed,
  };
}

describe('bytes lent from the quotas', () => {
  it('let several nodes together pass the burst and the rate over time, in equal parts and no byte more', async () => {
    const lengths = fc.tuple(
      fc.integer({ min: 1_500, max: 65_000 }),
      fc.integer({ min: 1_500, max: 65_000 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 5 * MB, max: 100 * MB }), lengths, async (rate, sizes) => {
        const clock = new ManualClock();
        const burst = 2 * MB;
        const authority = new QuotaByteAuthority(new LocalAuthority(clock));
        const nodes = sizes.map(() => nodeOf(authority, clock, rate, burst));
        for (let ms = 0; ms < 3_000; ms += 4) {
          for (let round = 0; round < 3; round++) {
            for (const [i, node] of nodes.entries()) node.drain(sizes[i] as number);
            await Promise.resolve();
            await Promise.resolve();
            await Promise.resolve();
          }
          await clock.advance(4);
        }
        const allowed = burst + rate * 3;
        const passed = nodes.map((node) => node.passed());
        const sum = passed.reduce((total, each) => total + each, 0);
        expect(sum).toBeLessThanOrEqual(allowed);
        expect(sum).toBeGreaterThan(0.96 * allowed - 4 * 65_536);
        expect(Math.min(...passed)).toBeGreaterThan(0.4 * sum);
      }),
      { numRuns: 5 },
    );
  });

  it('are refused under a limit of 0, and taken back without loss', async () => {
    const clock = new ManualClock();
    const authority = new QuotaByteAuthority(new LocalAuthority(clock));
    const policy = { limit_value: 1_000, interval_ms: 1_000, burst_value: 5_000 };
    const reserve = (bytes: number, under = policy) => authority.reserve('team', 'ingress', under, bytes);
    expect(await reserve(1, { ...policy, limit_value: 0 })).toEqual({ outcome: 'refused' });
    expect(await reserve(5_000)).toEqual({ outcome: 'reserved', delay_ms: 0 });
    expect(await reserve(3_000)).toEqual({ outcome: 'reserved', delay_ms: 3_000 });
    expect(await reserve(1_000)).toEqual({ outcome: 'reserved', delay_ms: 4_000 });
    authority.giveBack('team', 'ingress', policy, 4_000);
    expect(await reserve(1)).toEqual({ outcome: 'reserved', delay_ms: 1 });
    authority.giveBack('team', 'ingress', policy, 10 ** 6);
    expect(await reserve(5_000)).toEqual({ outcome: 'reserved', delay_ms: 0 });
  });
});
