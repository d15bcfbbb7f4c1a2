import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ApiError } from '../../src/contract/errors.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { outputOf, program, start, until } from '../support/process/harness.ts';

const is_root = process.getuid?.() === 0;

test('a process is shown with its name, its folder and its account', async () => {
  const { supervisor } = await start();
  const { process: named } = await supervisor.spawn({ command: ['sleep', '100'], name: 'n', cwd: '/tmp/..' });
  expect(named).toMatchObject({ name: 'n', cwd: '/', user: null });
  const { process: plain } = await supervisor.spawn({ command: ['sleep', '100'] });
  expect(plain).toMatchObject({ name: null, cwd: process.cwd(), user: null });
});

test.runIf(is_root)('the account shown is the requested one, or that of --process-user', async () => {
  const { supervisor } = await start({ default_user: 'daemon' });
  const request = { command: ['sleep', '100'], cwd: '/' };
  expect((await supervisor.spawn(request)).process.user).toBe('daemon');
  expect((await supervisor.spawn({ ...request, user: 'nobody' })).process.user).toBe('nobody');
});

test.runIf(is_root)('a process keeps its account when the next daemon has another default', async () => {
  const first = await start({ default_user: 'daemon' });
  await first.supervisor.spawn({ command: ['true'], cwd: '/', process_id: 'p' });
  await first.supervisor.finished('p');
  await first.supervisor.stop();
  const next = await start({ default_user: 'nobody', directory: first.directory });
  expect((await next.supervisor.get('p')).user).toBe('daemon');
});

test('the duration of a run is null while it lasts and is kept after its end', async () => {
  const clock = new ManualClock();
  const { supervisor, events, again } = await start({}, clock);
  const { process: running } = await supervisor.spawn({ command: ['cat'], stdin: 'pipe', process_id: 'p' });
  expect(running).toMatchObject({ duration_ms: null, exited_at: null, timed_out: false });
  await clock.advance(1_234);
  clock.step(-60_000); // the wall clock does not count
  await supervisor.writeStdin('p', { data: [], end: true });
  const ended = await supervisor.finished('p');
  expect(ended).toMatchObject({ duration_ms: 1_234, timed_out: false });
  await until(() => events.length === 2);
  expect(events[1]?.payload).toMatchObject({ duration_ms: 1_234 });
  await supervisor.stop();
  expect(await (await again()).supervisor.get('p')).toEqual(ended);
});

test('a run that was ended by its timeout says so, also to the next daemon', async () => {
  const clock = new ManualClock();
  const { supervisor, again } = await start({}, clock);
  await supervisor.spawn({ command: ['sleep', '100'], timeout_ms: 5_000, process_id: 'p' });
  await until(async () => {
    await clock.advance(1_000);
    return (await supervisor.get('p')).state === 'exited';
  });
  expect(await supervisor.get('p')).toMatchObject({ timed_out: true, signal: 'SIGTERM' });
  await supervisor.stop();
  expect(await (await again()).supervisor.get('p')).toMatchObject({ timed_out: true });
});

test('the record of an earlier version, without account and duration, is shown by what it holds', async () => {
  const { supervisor, directory, again } = await start();
  await supervisor.spawn({ command: ['true'], process_id: 'p' });
  const ended = await supervisor.finished('p');
  await supervisor.stop();
  const file = join(directory, 'p/process.json');
  const record = JSON.parse((await readFile(file, 'utf8')).trim().split('\n').at(-1) ?? '');
  delete record.run.user;
  delete record.end.timed_out;
  delete record.end.duration_ms;
  record.end.exited_at_ms = record.run.started_at_ms + 70;
  await writeFile(file, JSON.stringify(record));
  expect(await (await again()).supervisor.get('p')).toEqual({
    ...ended,
    exited_at: new Date(record.end.exited_at_ms).toISOString(),
    duration_ms: 70,
  });
});

test('a process that has ended takes no signal, no input and no size', async () => {
  const { supervisor } = await start();
  await supervisor.spawn({ command: ['true'], stdin: 'pipe', process_id: 'p' });
  await supervisor.finished('p');
  const conflict = { code: 'conflict', message: expect.stringContaining('has ended') };
  expect(() => supervisor.signal('p', 'TERM')).toThrow(expect.objectContaining(conflict));
  expect(() => supervisor.resize('p', { cols: 1, rows: 1 })).toThrow(expect.objectContaining(conflict));
  await expect(supervisor.writeStdin('p', { data: [] })).rejects.toMatchObject(conflict);
});

test('a signal goes to the group, or to the leader alone', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: program('report-signal.mjs', 'leader', 'child') });
  const { process_id } = process;
  const count = async (text: string) =>
    (await outputOf(supervisor, process_id)).stdout.split(`${text}\n`).length - 1;
  await until(async () => (await count('leader up')) === 1 && (await count('child up')) === 1);
  supervisor.signal(process_id, 'SIGUSR1', 'leader');
  await until(async () => (await count('leader got')) === 1);
  supervisor.signal(process_id, 'usr1');
  await until(async () => (await count('leader got')) === 2 && (await count('child got')) > 0);
  expect(await count('child got')).toBe(1);
  expect(() => supervisor.signal(process_id, 'SIGNOTHING')).toThrow(ApiError);
  await supervisor.remove(process_id);
  expect(() => supervisor.signal(process_id, 'TERM')).toThrow('has ended');
});

test('a signal for the main command ends it for good, whatever its restart policy', async () => {
  const { supervisor } = await start();
  const restart = { policy: 'always', backoff_ms: 1 } as const;
  const { process } = await supervisor.spawn({ command: ['sleep', '1000'], restart });
  supervisor.forward(process.process_id, 'SIGTERM');
  expect(await supervisor.finished(process.process_id)).toMatchObject({
    exit_code: 143,
    signal: 'SIGTERM',
    restart_count: 0,
  });
});
