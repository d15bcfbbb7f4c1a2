import { expect, test } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { type Harness, outputOf, program, start, until } from '../support/process/harness.ts';

/** Whether a process makes progress: its output grows. */
async function grows({ supervisor }: Harness, process_id: string): Promise<boolean> {
  const before = (await outputOf(supervisor, process_id)).stdout.length;
  for (let looks = 0; looks < 20; looks++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if ((await outputOf(supervisor, process_id)).stdout.length > before) return true;
  }
  return false;
}

test('pause really stops a tree, its sessions of their own included, and resume lets it go on', async () => {
  const harness = await start();
  const { supervisor } = harness;
  const tick = program('tick.mjs').join(' ');
  const { process: own } = await supervisor.spawn({ shell: `setsid env -i ${tick} & wait` });
  const { process: plain } = await supervisor.spawn({ command: program('tick.mjs') });
  for (const { process_id } of [own, plain]) await until(() => grows(harness, process_id));
  await Promise.all([supervisor.pause(), supervisor.pause()]);
  expect(supervisor.is_paused).toBe(true);
  expect(await grows(harness, own.process_id)).toBe(false);
  expect(await grows(harness, plain.process_id)).toBe(false);
  expect((await supervisor.get(plain.process_id)).state).toBe('paused');
  await expect(supervisor.spawn({ command: ['true'] })).rejects.toMatchObject({ code: 'conflict' });
  await supervisor.resume();
  await supervisor.resume();
  for (const { process_id } of [own, plain]) await until(() => grows(harness, process_id));
  expect((await supervisor.get(plain.process_id)).state).toBe('running');
});

test('what was stopped before a pause stays stopped after it', async () => {
  const harness = await start();
  const { process } = await harness.supervisor.spawn({ command: program('tick.mjs') });
  await until(() => grows(harness, process.process_id));
  harness.supervisor.signal(process.process_id, 'SIGSTOP');
  await until(async () => !(await grows(harness, process.process_id)));
  await harness.supervisor.pause();
  await harness.supervisor.resume();
  expect(await grows(harness, process.process_id)).toBe(false);
});

test('a time-out stands still while paused', async () => {
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
  await until(async () => {
    await clock.advance(100);
    return events.length === 2;
  });
  expect(events[1]?.payload).toMatchObject({ timed_out: true });
});

test('a paused process can be ended', async () => {
  const { supervisor } = await start({ grace_ms: 100 });
  const { process } = await supervisor.spawn({ command: ['sleep', '1000'] });
  await supervisor.pause();
  expect(await supervisor.remove(process.process_id)).toMatchObject({ state: 'exited' });
});

test('resource usage counts the tree, and all trees together', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'sleep 1000 & sleep 1000 & wait' });
  const { resource_usage } = await until(async () => {
    const view = await supervisor.get(process.process_id);
    return view.resource_usage.processes === 3 ? view : null;
  });
  expect(resource_usage.memory_bytes).toBeGreaterThan(100_000);
  await supervisor.spawn({ command: ['sleep', '1000'] });
  expect((await supervisor.usage()).processes).toBe(4);
  expect((await supervisor.list()).map((view) => view.resource_usage.processes)).toEqual([3, 1]);
});
