import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { outputOf, start } from '../support/process/harness.ts';

test('a command runs, its output is kept and its start and end are each told once', async () => {
  const { supervisor, events } = await start();
  const { created, process } = await supervisor.spawn({ shell: 'echo out; echo err >&2; exit 3', name: 'n' });
  expect(created).toBe(true);
  const ended = await supervisor.finished(process.process_id);
  expect(ended).toMatchObject({ state: 'exited', exit_code: 3, signal: null, restart_count: 0, ready: null });
  expect(await outputOf(supervisor, process.process_id)).toEqual({ stdout: 'out\n', stderr: 'err\n' });
  await eventually(() => expect(events).toHaveLength(2));
  expect(events.map(({ event_type }) => event_type)).toEqual(['process.started', 'process.exited']);
  expect(events[0]?.payload).toEqual({
    process_id: process.process_id,
    pid: process.pid,
    command: ['/bin/sh', '-c', 'echo out; echo err >&2; exit 3'],
    cwd: globalThis.process.cwd(),
    name: 'n',
    restart_count: 0,
  });
  expect(events[1]?.payload).toEqual({
    process_id: process.process_id,
    pid: process.pid,
    exit_code: 3,
    signal: null,
    duration_ms: expect.any(Number),
    timed_out: false,
    stdout_preview: 'out\n',
    stderr_preview: 'err\n',
    restart_count: 0,
  });
});

test('waiting ends when the process ends, the time is over or the caller leaves', async () => {
  const clock = new ManualClock();
  const { supervisor } = await start({}, clock);
  const { process } = await supervisor.spawn({ command: ['cat'], stdin: 'pipe' });
  const timed = supervisor.wait(process.process_id, { for: 'exit', timeout_ms: 5_000 });
  await clock.advance(5_000);
  expect(await timed).toBe(null);
  const left = new AbortController();
  const leaving = supervisor.wait(process.process_id, { for: 'exit', signal: left.signal });
  left.abort();
  expect(await leaving).toBe(null);
  const waiting = supervisor.wait(process.process_id, { for: 'exit' });
  await supervisor.writeStdin(process.process_id, { data: [], end: true });
  expect(await waiting).toMatchObject({ state: 'exited', exit_code: 0 });
  await expect(supervisor.wait(process.process_id, { for: 'ready' })).rejects.toMatchObject({
    code: 'conflict',
  });
});

test('stopping ends every process and reports every end', async () => {
  const { supervisor, events } = await start({ grace_ms: 200 });
  await supervisor.spawn({ command: ['sleep', '100'] });
  await supervisor.spawn({
    shell: 'trap "" TERM; echo on; while true; do sleep 100; done',
    process_id: 'stubborn',
  });
  for await (const item of await supervisor.output('stubborn', { streams: ['stdout'], follow: true })) {
    if (item.type === 'output') break;
  }
  await supervisor.stop();
  const ends = events.filter(({ event_type }) => event_type === 'process.exited');
  expect(ends.map(({ payload }) => 'signal' in payload && payload.signal).sort()).toEqual([
    'SIGKILL',
    'SIGTERM',
  ]);
  await expect(supervisor.spawn({ command: ['true'] })).rejects.toMatchObject({ code: 'shutting_down' });
});
