import { expect, test } from 'vitest';
import { CannotStart } from '../../src/process/start/command.ts';
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

test('an end by a signal nobody asked for is a crash, one that was asked for is an exit', async () => {
  const { supervisor, events } = await start();
  const crashed = await supervisor.spawn({ shell: 'kill -SEGV $$' });
  await supervisor.finished(crashed.process.process_id);
  const killed = await supervisor.spawn({ shell: 'kill -KILL $$' });
  await supervisor.finished(killed.process.process_id);
  const asked = await supervisor.spawn({ command: ['sleep', '100'] });
  supervisor.signal(asked.process.process_id, 'SIGKILL');
  await supervisor.finished(asked.process.process_id);
  const coded = await supervisor.spawn({ shell: 'exit 137' });
  await supervisor.finished(coded.process.process_id);
  await until(() => events.length === 8);
  const ends = events.filter(({ event_type }) => event_type !== 'process.started');
  expect(ends.map(({ event_type, payload }) => [event_type, payload])).toMatchObject([
    ['process.crashed', { exit_code: 139, signal: 'SIGSEGV', reason: 'signal', core_dumped: false }],
    ['process.crashed', { exit_code: 137, signal: 'SIGKILL', reason: 'signal' }],
    ['process.exited', { exit_code: 137, signal: 'SIGKILL' }],
    ['process.exited', { exit_code: 137, signal: null }],
  ]);
});

test.each([
  [{ command: ['no-such-program'] }, 'command', 127],
  [{ command: ['/no/such/program'] }, 'command', 127],
  [{ command: ['/etc/passwd'] }, 'command', 126],
  [{ command: ['/etc'] }, 'command', 126],
  [{ command: ['true'], cwd: '/no/such/folder' }, 'cwd', 126],
  [{ command: ['true'], cwd: '/etc/passwd' }, 'cwd', 126],
  [{ command: ['true'], user: 'nobody-such' }, 'user', 126],
])(
  '%j cannot be started: the field is named, no event is made and the id stays free',
  async (request, field, exit_code) => {
    const { supervisor, events } = await start();
    const failure = await supervisor.spawn({ ...request, process_id: 'p' }).catch((error) => error);
    expect(failure).toBeInstanceOf(CannotStart);
    expect(failure).toMatchObject({ code: 'invalid_request', details: { field }, exit_code });
    expect(await supervisor.list()).toEqual([]);
    expect(events).toEqual([]);
    const { created } = await supervisor.spawn({ command: ['true'], process_id: 'p' });
    expect(created).toBe(true);
  },
);

test('the same id with the same request is one process, with another it is a conflict', async () => {
  const { supervisor, events } = await start();
  const request = { command: ['sleep', '100'], env: { A: '1', B: '2' } };
  const [first, second] = await Promise.all([
    supervisor.spawn({ ...request, process_id: 'p' }),
    supervisor.spawn({ process_id: 'p', env: { B: '2', A: '1' }, command: ['sleep', '100'] }),
  ]);
  expect([first.created, second.created]).toEqual([true, false]);
  expect(second.process.pid).toBe(first.process.pid);
  await expect(supervisor.spawn({ command: ['true'], process_id: 'p' })).rejects.toMatchObject({
    code: 'conflict',
  });
  await until(() => events.length === 1);
});

test('stopping ends every process and tells every end', async () => {
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
