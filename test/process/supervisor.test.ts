import { expect, test } from 'vitest';
import { outputOf, start, until } from '../support/process/harness.ts';

test('a command runs, its output is kept and its start and end are each told once', async () => {
  const { supervisor, events } = await start();
  const { created, process } = await supervisor.spawn({ shell: 'echo out; echo err >&2; exit 3', name: 'n' });
  expect(created).toBe(true);
  const ended = await supervisor.finished(process.process_id);
  expect(ended).toMatchObject({ state: 'exited', exit_code: 3, signal: null, restart_count: 0, ready: null });
  expect(await outputOf(supervisor, process.process_id)).toEqual({ stdout: 'out\n', stderr: 'err\n' });
  await until(() => events.length === 2);
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
