import { pino } from 'pino';
import { expect, it } from 'vitest';
import { Schedule } from '../../src/base/schedule.ts';
import { ManualClock } from '../support/manual-clock.ts';

function scene() {
  const clock = new ManualClock();
  const schedule = new Schedule(clock, pino({ level: 'silent' }));
  return { clock, schedule };
}

it('calls each job when it asked for it, whatever the others do', async () => {
  const { clock, schedule } = scene();
  const called: number[] = [];
  schedule.add({ name: 'stuck', run: () => new Promise(() => {}) });
  schedule.add({
    name: 'steady',
    async run() {
      called.push(clock.monotonicMs());
      return 300;
    },
  });
  await schedule.start();
  await clock.advance(1_000);
  expect(called).toEqual([0, 300, 600, 900]);
});

it('calls one that failed again, and one that is woken at once', async () => {
  const { clock, schedule } = scene();
  let calls = 0;
  schedule.add({
    name: 'job',
    async run() {
      calls += 1;
      if (calls === 1) throw new Error('on purpose');
      return 60_000;
    },
  });
  await schedule.start();
  await clock.advance(999);
  expect(calls).toBe(1);
  await clock.advance(1);
  expect(calls).toBe(2);
  schedule.wake('job');
  await clock.advance(0);
  expect(calls).toBe(3);
});

it('calls one that is woken while it runs once more, and none after its stop', async () => {
  const { clock, schedule } = scene();
  let calls = 0;
  let finish = () => {};
  schedule.add({
    name: 'job',
    run() {
      calls += 1;
      return new Promise((resolve) => {
        finish = () => resolve(10);
      });
    },
  });
  await schedule.start();
  schedule.wake('job');
  schedule.wake('job');
  expect(calls).toBe(1);
  finish();
  await clock.advance(0);
  expect(calls).toBe(2);
  const stopped = schedule.stop();
  finish();
  await stopped;
  schedule.wake('job');
  await clock.advance(1_000);
  expect(calls).toBe(2);
});
