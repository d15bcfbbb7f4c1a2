import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RestartBackoff } from '../../src/process/restart.ts';

const failure = { exit_code: 1, uptime_ms: 0, restart_count: 0 };

test('the delays double from one second to thirty', () => {
  const backoff = new RestartBackoff({ policy: 'always' }, () => 0.5);
  const delays = Array.from({ length: 8 }, () => backoff.after(failure));
  expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
});

test('a minute of life begins the delays anew', () => {
  const backoff = new RestartBackoff({ policy: 'always', backoff_ms: 100 }, () => 0.5);
  expect([backoff.after(failure), backoff.after(failure)]).toEqual([100, 200]);
  expect(backoff.after({ ...failure, uptime_ms: 60_000 })).toBe(100);
});

test('the policy and the number decide', () => {
  const random = () => 0.5;
  expect(new RestartBackoff({ policy: 'never' }, random).after(failure)).toBe(null);
  expect(new RestartBackoff({ policy: 'on-failure' }, random).after({ ...failure, exit_code: 0 })).toBe(null);
  expect(new RestartBackoff({ policy: 'on-failure' }, random).after({ ...failure, exit_code: null })).toBe(
    1_000,
  );
  expect(new RestartBackoff({ policy: 'always' }, random).after({ ...failure, exit_code: 0 })).toBe(1_000);
  expect(new RestartBackoff({ policy: 'always', max_restarts: 0 }, random).after(failure)).toBe(null);
  const last = { ...failure, restart_count: 2 };
  expect(new RestartBackoff({ policy: 'always', max_restarts: 3 }, random).after(last)).toBe(1_000);
  expect(new RestartBackoff({ policy: 'always', max_restarts: 2 }, random).after(last)).toBe(null);
});

test('the jitter stays within a fifth', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (random) => {
      const delay_ms = new RestartBackoff({ policy: 'always' }, () => random).after(failure);
      expect(delay_ms).toBeGreaterThanOrEqual(800);
      expect(delay_ms).toBeLessThanOrEqual(1_200);
    }),
  );
});

test('a first delay of none grows like any other, however often the process fails', () => {
  const backoff = new RestartBackoff({ policy: 'always', backoff_ms: 0 }, () => 0.5);
  const delays = Array.from({ length: 1_100 }, () => backoff.after(failure));
  expect(delays.slice(0, 4)).toEqual([0, 2, 4, 8]);
  expect(delays.slice(20).every((delay) => delay === 30_000)).toBe(true);
});
