import { describe, expect, it } from 'vitest';
import { sleep } from '../../src/base/clock.ts';
import { runTime } from '../../src/base/run-time.ts';
import { ManualClock } from '../support/manual-clock.ts';

function waiting(delay_ms: number) {
  const clock = new ManualClock();
  const time = runTime(clock);
  const seen = { fired: 0 };
  const timer = time.after(delay_ms, () => {
    seen.fired += 1;
  });
  return { clock, time, timer, seen };
}

describe('a wait in run time', () => {
  it('ends after its time while the program runs, once, and leaves no timer', async () => {
    const { clock, seen } = waiting(10_000);
    await clock.advance(9_999);
    expect(seen.fired).toBe(0);
    await clock.advance(1);
    expect([seen.fired, clock.timers]).toEqual([1, 0]);
  });

  it('leaves no timer when it is cancelled, twice, beside another', async () => {
    const { clock, time, timer, seen } = waiting(10_000);
    const other = time.after(5_000, () => {});
    timer.cancel();
    timer.cancel();
    // Its own, and the beat.
    expect(clock.timers).toBe(2);
    other.cancel();
    await clock.advance(60_000);
    expect([seen.fired, clock.timers]).toEqual([0, 0]);
  });

  it('counts at most a second of a stop in its middle', async () => {
    const { clock, seen } = waiting(10_000);
    await clock.advance(3_500);
    clock.freeze(5_000);
    await clock.advance(5_500);
    expect(seen.fired).toBe(0);
    await clock.advance(1_000);
    expect(seen.fired).toBe(1);
  });

  it('begins again, once, if it would have ended in a stop', async () => {
    const { clock, seen } = waiting(10_000);
    await clock.advance(3_000);
    clock.freeze(60_000);
    await clock.advance(9_999);
    expect(seen.fired).toBe(0);
    await clock.advance(1);
    expect(seen.fired).toBe(1);
  });

  it('ends at last in a program that is stopped again and again', async () => {
    const { clock, seen } = waiting(2_000);
    for (let stops = 0; stops < 20 && seen.fired === 0; stops++) {
      await clock.advance(500);
      clock.freeze(4_000);
      await clock.advance(0);
    }
    expect(seen.fired).toBe(1);
  });

  it('gets back the rest of a long time, not all of it', async () => {
    const { clock, seen } = waiting(3_600_000);
    await clock.advance(1_800_000);
    clock.freeze(7_200_000);
    await clock.advance(1_798_999);
    expect(seen.fired).toBe(0);
    await clock.advance(1_001);
    expect(seen.fired).toBe(1);
  });

  it('is not lengthened by a loop that is a little late', async () => {
    const { clock, seen } = waiting(10_000);
    await clock.advance(9_500);
    clock.freeze(900);
    await clock.advance(0);
    expect(seen.fired).toBe(1);
  });
});

it('goes on from the same time after a stop, also where a poll measures it', async () => {
  const clock = new ManualClock();
  const time = runTime(clock);
  const end_ms = time.monotonicMs() + 5_000;
  let polls = 0;
  const polling = (async () => {
    for (; time.monotonicMs() < end_ms; polls++) await sleep(time, 20);
  })();
  await clock.advance(1_000);
  clock.freeze(30_000);
  await clock.advance(2_000);
  expect(time.monotonicMs()).toBeLessThan(end_ms);
  await clock.advance(4_000);
  await polling;
  expect(polls).toBeGreaterThan(150);
});

it('is one for each clock', () => {
  const clock = new ManualClock();
  expect(runTime(clock)).toBe(runTime(clock));
  expect(runTime(clock)).not.toBe(runTime(new ManualClock()));
});
