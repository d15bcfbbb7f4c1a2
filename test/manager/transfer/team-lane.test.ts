import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LocalAuthority } from '../../../src/manager/quotas/local-authority.ts';
import { TeamLane } from '../../../src/manager/transfer/team-lane.ts';
import type { Reservation } from '../../../src/network/authority.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const RATE = 1024 * 1024;
const POLICY = { limit_value: RATE, interval_ms: 1_000, burst_value: RATE };

/** A lane over a real bucket; `answer` stands for the authority where a test says so. */
function scene({ is_fail_open = false } = {}) {
  const clock = new ManualClock();
  const authority = new LocalAuthority(clock);
  const state = { is_away: false, rests: 0 };
  const lane = new TeamLane({
    bytes_per_second: RATE,
    is_fail_open,
    clock,
    reserve: async (bytes): Promise<Reservation> => {
      if (state.is_away) return { outcome: 'unreachable' };
      return authority.reserve({ team_id: 'team_1', dimension: 'transfer_bytes' }, POLICY, bytes);
    },
    onRest: () => {
      state.rests += 1;
    },
  });
  const passed: string[] = [];
  const wait = (name: string, bytes: number, webhook_since_ms: number | null = null) => {
    const waiting = lane.wait({ bytes, webhook_since_ms });
    void waiting.granted.then((is_granted) => is_granted && passed.push(name));
    return waiting;
  };
  return { clock, lane, state, passed, wait };
}

describe('bytes of a team that wait for its rate', () => {
  it('are never more than the burst and what the time since has given', async () => {
    const step = fc.record({
      bytes: fc.integer({ min: 1, max: 200_000 }),
      ms: fc.nat({ max: 500 }),
      is_webhook: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        const { clock, lane } = scene();
        let admitted = 0;
        let asked = 0;
        let elapsed_ms = 0;
        for (const { bytes, ms, is_webhook } of steps) {
          asked += bytes;
          const { granted } = lane.wait({ bytes, webhook_since_ms: is_webhook ? elapsed_ms : null });
          void granted.then(() => {
            admitted += bytes;
          });
          await clock.advance(ms);
          elapsed_ms += ms;
          expect(admitted).toBeLessThanOrEqual(RATE + (RATE * elapsed_ms) / 1_000);
        }
        await clock.advance(20_000);
        expect(admitted).toBe(asked);
      }),
      { numRuns: 30 },
    );
  });

  it('pass in the order of waiting, webhooks by turns with all else, the request that began first to its end', async () => {
    const { clock, passed, wait } = scene();
    wait('burst', RATE);
    await clock.advance(0);
    for (const name of ['a', 'b', 'c', 'd']) wait(name, RATE / 8);
    wait('later', RATE / 8, 2);
    wait('first', RATE / 8, 1);
    wait('first again', RATE / 8, 1);
    await clock.advance(10_000);
    expect(passed[0]).toBe('burst');
    expect(passed.filter((name) => name.length === 1)).toEqual(['a', 'b', 'c', 'd']);
    expect(passed.slice(1).filter((name) => name.length > 1)).toEqual(['first', 'first again', 'later']);
    // Never two of one kind while the other waits.
    const kinds = passed.slice(1, 7).map((name) => name.length > 1);
    expect(kinds.every((kind, i) => i === 0 || kind !== kinds[i - 1])).toBe(true);
  });

  it('wait no longer for one that has given up', async () => {
    const { clock, passed, wait } = scene();
    wait('burst', RATE);
    await clock.advance(0);
    const given_up = wait('given up', 100 * RATE);
    wait('next', 1_000);
    given_up.cancel();
    expect(await given_up.granted).toBe(false);
    given_up.cancel();
    await clock.advance(101_000);
    expect(passed).toEqual(['burst', 'next']);
  });

  it('wait while the authority is away, and pass when it is back', async () => {
    const { clock, state, passed, wait } = scene();
    state.is_away = true;
    wait('held', 1_000);
    await clock.advance(60_000);
    expect(passed).toEqual([]);
    state.is_away = false;
    await clock.advance(100);
    expect(passed).toEqual(['held']);
  });

  it('pass while the authority is away where quotas fail open', async () => {
    const { clock, state, passed, wait } = scene({ is_fail_open: true });
    state.is_away = true;
    wait('passes', 100 * RATE);
    await clock.advance(100);
    expect(passed).toEqual(['passes']);
  });

  it('leave nothing behind: tokens that are not used go back', async () => {
    const { clock, state, wait } = scene();
    wait('one', 1_000);
    await clock.advance(5_000);
    expect(state.rests).toBeGreaterThan(0);
    const rests = state.rests;
    await clock.advance(60_000);
    expect(state.rests).toBe(rests);
  });
});
