import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { start } from '../support/process/harness.ts';

test('a timeout stands still while the processes are paused', async () => {
  const clock = new ManualClock();
  const { supervisor, events } = await start({}, clock);
  await supervisor.spawn({ command: ['sleep', '1000'], timeout_ms: 10_000 });
  await clock.advance(9_000);
  const pausing = supervisor.pause();
  let is_paused = false;
  void pausing.then(() => {
    is_paused = true;
  });
  while (!is_paused) await clock.advance(1);
  await clock.advance(3_600_000);
  expect(events).toHaveLength(1);
  const resuming = supervisor.resume();
  await resuming;
  await clock.advance(500);
  expect(events).toHaveLength(1);
  await eventually(async () => {
    await clock.advance(100);
    expect(events).toHaveLength(2);
  });
  expect(events[1]?.payload).toMatchObject({ timed_out: true });
});

test('a timeout stands still while the daemon is stopped', async () => {
  const clock = new ManualClock();
  const { supervisor, events } = await start({}, clock);
  await supervisor.spawn({ command: ['sleep', '1000'], timeout_ms: 60_000 });
  await clock.advance(30_000);
  clock.freeze(3_600_000);
  await clock.advance(28_000);
  expect(events.map(({ event_type }) => event_type)).toEqual(['process.started']);
  await eventually(async () => {
    await clock.advance(100);
    expect(events).toHaveLength(2);
  });
  expect(events[1]?.payload).toMatchObject({ timed_out: true });
});
