import { uptime } from 'node:os';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atMost, runTime, sleep, systemClock, timestamp, workingClock } from '../../src/base/clock.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe.each([
  ['the clock of the machine', systemClock],
  ['the clock for work', workingClock],
])('%s', (_, clock) => {
  it('calls once after a delay, unless that was cancelled', async () => {
    const calls: string[] = [];
    clock.after(0, () => calls.push('cancelled')).cancel();
    await new Promise<void>((resolve) => {
      clock.after(0, () => calls.push('first'));
      clock.after(1, resolve);
    });
    expect(calls).toEqual(['first']);
  });

  it('never runs backwards', () => {
    let last_ms = clock.monotonicMs();
    for (let n = 0; n < 1_000; n++) {
      const now_ms = clock.monotonicMs();
      expect(now_ms).toBeGreaterThanOrEqual(last_ms);
      last_ms = now_ms;
    }
  });

  it('knows the boot of the machine, and that it lies as far back as the kernel says', () => {
    const before_ms = uptime() * 1_000;
    const { id, ms } = clock.boot();
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    // The kernel tells it in hundredths of a second, and a reading is used again for a second.
    expect(ms).toBeGreaterThan(before_ms - 2_000);
    expect(clock.boot().id).toBe(id);
  });
});

it('cuts a delay that a timer of the platform cannot hold, instead of firing at once', async () => {
  let is_fired = false;
  const timer = systemClock.after(2 ** 40, () => {
    is_fired = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 5));
  timer.cancel();
  expect(is_fired).toBe(false);
});

describe('sleep', () => {
  it('ends after its time, not before', async () => {
    const clock = new ManualClock();
    let is_over = false;
    const sleeping = sleep(clock, 100).then(() => {
      is_over = true;
    });
    await clock.advance(99);
    expect(is_over).toBe(false);
    await clock.advance(1);
    await sleeping;
    expect(clock.timers).toBe(0);
  });

  it('ends at once when it is aborted, and leaves no timer', async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const sleeping = sleep(clock, 1_000_000, stop.signal);
    stop.abort();
    await sleeping;
    expect(clock.timers).toBe(0);
    await sleep(clock, 1_000_000, stop.signal);
    expect(clock.timers).toBe(0);
  });
});

describe('a wait for work', () => {
  it('ends with the work, and leaves no timer', async () => {
    const clock = new ManualClock();
    await atMost(clock, 1_000_000, Promise.resolve());
    expect(clock.timers).toBe(0);
    await expect(atMost(clock, 1_000_000, Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(clock.timers).toBe(0);
  });

  it('ends after its time where the work does not', async () => {
    const clock = new ManualClock();
    let is_over = false;
    const waiting = atMost(clock, 100, new Promise(() => {})).then(() => {
      is_over = true;
    });
    await clock.advance(99);
    expect(is_over).toBe(false);
    await clock.advance(1);
    await waiting;
  });
});

it('writes a time as RFC 3339 with milliseconds, whatever it wrote before', () => {
  expect([0, 0, 1_767_225_600_123, 0].map(timestamp)).toEqual([
    '1970-01-01T00:00:00.000Z',
    '1970-01-01T00:00:00.000Z',
    '2026-01-01T00:00:00.123Z',
    '1970-01-01T00:00:00.000Z',
  ]);
});

it('writes every time as Date does, and refuses what is none', () => {
  const DAY_MS = 86_400_000;
  const END_MS = Date.UTC(10_000, 0);
  const day = fc.integer({ min: 0, max: END_MS / DAY_MS }).map((days) => days * DAY_MS);
  const edge = day.chain((ms) => fc.constantFrom(ms - 1, ms, ms + 0.5));
  const any = fc.oneof(edge, fc.integer({ min: -END_MS, max: 2 * END_MS }));
  const isAsOfDate = (ms: number) => timestamp(ms) === new Date(ms).toISOString();
  fc.assert(fc.property(any, isAsOfDate), { numRuns: 5_000 });
  const leap_days = [1972, 2000, 2024, 2400].map((year) => Date.UTC(year, 1, 29));
  const others = [1999, 2100, 9999].flatMap((year) => [Date.UTC(year, 1, 28), Date.UTC(year, 2, 1)]);
  expect([...leap_days, ...others, 0, END_MS - 1, END_MS].filter((ms) => !isAsOfDate(ms))).toEqual([]);
  expect(() => timestamp(Number.NaN)).toThrow(RangeError);
});

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
