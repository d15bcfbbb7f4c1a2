import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { fileLimit } from '../support/process/file-limit.ts';
import { type Harness, isAlive, outputOf, program, start } from '../support/process/harness.ts';

/** Whether a process makes progress: its output grows. */
async function grows({ supervisor }: Harness, process_id: string): Promise<boolean> {
  const before = (await outputOf(supervisor, process_id)).stdout.length;
  for (let looks = 0; looks < 20; looks++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if ((await outputOf(supervisor, process_id)).stdout.length > before) return true;
  }
  return false;
}

test('a pause really stops a tree, including sessions of its own, and a resume lets it go on', async () => {
  const harness = await start();
  const { supervisor } = harness;
  const tick = program('tick.mjs').join(' ');
  const { process: own } = await supervisor.spawn({ shell: `setsid env -i ${tick} & wait` });
  const { process: plain } = await supervisor.spawn({ command: program('tick.mjs') });
  for (const { process_id } of [own, plain])
    await eventually(async () => expect(await grows(harness, process_id)).toBe(true));
  await Promise.all([supervisor.pause(), supervisor.pause()]);
  expect(supervisor.is_paused).toBe(true);
  expect(await grows(harness, own.process_id)).toBe(false);
  expect(await grows(harness, plain.process_id)).toBe(false);
  expect((await supervisor.get(plain.process_id)).state).toBe('paused');
  await expect(supervisor.spawn({ command: ['true'] })).rejects.toMatchObject({ code: 'conflict' });
  await supervisor.resume();
  await supervisor.resume();
  for (const { process_id } of [own, plain])
    await eventually(async () => expect(await grows(harness, process_id)).toBe(true));
  expect((await supervisor.get(plain.process_id)).state).toBe('running');
});

test('what was stopped before a pause stays stopped after it', async () => {
  const harness = await start();
  const { process } = await harness.supervisor.spawn({ command: program('tick.mjs') });
  await eventually(async () => expect(await grows(harness, process.process_id)).toBe(true));
  harness.supervisor.signal(process.process_id, 'SIGSTOP');
  await eventually(async () => expect(await grows(harness, process.process_id)).toBe(false));
  await harness.supervisor.pause();
  await harness.supervisor.resume();
  expect(await grows(harness, process.process_id)).toBe(false);
});

test('a pause and a resume without memory end every process, with its event, and leave room for new ones', async () => {
  const { supervisor, events } = await start({ grace_ms: 300 });
  const stubborn = { shell: 'trap "" TERM; sleep 1000 & wait; sleep 1000', process_id: 'stubborn' };
  await supervisor.spawn(stubborn);
  const restart = { policy: 'always' } as const;
  await supervisor.spawn({ command: ['sleep', '1000'], process_id: 'restarted', restart });
  const pausing = supervisor.pause(false);
  await expect(supervisor.spawn({ command: ['true'] })).rejects.toMatchObject({ code: 'conflict' });
  await pausing;
  expect(supervisor.is_paused).toBe(true);
  await expect(supervisor.spawn({ command: ['true'] })).rejects.toMatchObject({ code: 'conflict' });
  const ended = () =>
    events
      .filter(({ event_type }) => /exited|crashed/.test(event_type))
      .map(({ payload }) => payload.process_id);
  expect(ended().sort()).toEqual(['restarted', 'stubborn']);
  await supervisor.resume();

  await supervisor.spawn({ command: ['sleep', '1000'], process_id: 'kept' });
  await supervisor.pause();
  await supervisor.resume(false);
  expect([supervisor.is_paused, ended().at(-1)]).toEqual([false, 'kept']);
  expect((await supervisor.spawn({ command: ['true'] })).created).toBe(true);
});

test('a paused process can be ended', async () => {
  const { supervisor } = await start({ grace_ms: 100 });
  const { process } = await supervisor.spawn({ command: ['sleep', '1000'] });
  await supervisor.pause();
  expect(await supervisor.remove(process.process_id)).toMatchObject({ state: 'exited' });
});

test('while no file can be opened a pause is refused and leaves nothing stopped, and the next one works', async () => {
  const limitFiles = fileLimit();
  const { supervisor } = await start();
  const { process: view } = await supervisor.spawn({ command: program('tick.mjs'), process_id: 'tick' });
  await limitFiles(3);
  await expect(supervisor.pause()).rejects.toMatchObject({ code: 'too_many_requests' });
  expect(supervisor.is_paused).toBe(false);
  await limitFiles(1_024);
  expect(await isAlive(view.pid)).toBe(true);
  await supervisor.pause();
  expect(await supervisor.get('tick')).toMatchObject({ state: 'paused' });
  await supervisor.resume();
});
