import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ApiError } from '../../src/contract/errors.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { fileLimit } from '../support/process/file-limit.ts';
import { isAlive, outputOf, program, start } from '../support/process/harness.ts';
import { IS_UID_0 } from '../support/rights.ts';

test('a process is shown with its name, its folder and its account', async () => {
  const { supervisor } = await start();
  const { process: named } = await supervisor.spawn({ command: ['sleep', '100'], name: 'n', cwd: '/tmp/..' });
  expect(named).toMatchObject({ name: 'n', cwd: '/', user: null });
  const { process: plain } = await supervisor.spawn({ command: ['sleep', '100'] });
  expect(plain).toMatchObject({ name: null, cwd: process.cwd(), user: null });
});

test.runIf(IS_UID_0)('the account shown is the requested one, or that of --process-user', async () => {
  const { supervisor } = await start({ default_user: 'daemon' });
  const request = { command: ['sleep', '100'], cwd: '/' };
  expect((await supervisor.spawn(request)).process.user).toBe('daemon');
  expect((await supervisor.spawn({ ...request, user: 'nobody' })).process.user).toBe('nobody');
});

test.runIf(IS_UID_0)('a process keeps its account when the next daemon has another default', async () => {
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
  await eventually(() => expect(events).toHaveLength(2));
  expect(events[1]?.payload).toMatchObject({ duration_ms: 1_234 });
  await supervisor.stop();
  expect(await (await again()).supervisor.get('p')).toEqual(ended);
});

test('a run that was ended by its timeout says so, also to the next daemon', async () => {
  const clock = new ManualClock();
  const { supervisor, again } = await start({}, clock);
  await supervisor.spawn({ command: ['sleep', '100'], timeout_ms: 5_000, process_id: 'p' });
  await eventually(async () => {
    await clock.advance(1_000);
    expect((await supervisor.get('p')).state).toBe('exited');
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
  await rm(file); // which its owner may not write to
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
  await eventually(async () => expect([await count('leader up'), await count('child up')]).toEqual([1, 1]));
  supervisor.signal(process_id, 'SIGUSR1', 'leader');
  await eventually(async () => expect(await count('leader got')).toBe(1));
  supervisor.signal(process_id, 'usr1');
  await eventually(async () => {
    expect(await count('leader got')).toBe(2);
    expect(await count('child got')).toBeGreaterThan(0);
  });
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

/** Lets the time of a test pass until something is true. */
async function advanceUntil(
  clock: ManualClock,
  step_ms: number,
  condition: () => boolean | Promise<boolean>,
) {
  while (!(await condition())) await clock.advance(step_ms);
}

test('a process that fails is started again with growing delays, and max_restarts ends it', async () => {
  const clock = new ManualClock();
  const { supervisor, events } = await start({}, clock);
  const restart = { policy: 'on-failure', max_restarts: 3, backoff_ms: 400 } as const;
  const { process } = await supervisor.spawn({ shell: 'exit 4', restart });
  const state = async () => (await supervisor.get(process.process_id)).state;
  for (const [index, delay_ms] of [400, 800, 1600].entries()) {
    await eventually(async () => {
      expect(await state()).toBe('restarting');
      expect(events).toHaveLength(2 * (index + 1));
    });
    await clock.advance(delay_ms - 1);
    expect(await state()).toBe('restarting');
    await clock.advance(1);
    await eventually(() => expect(events.length).toBeGreaterThan(2 * (index + 1)));
  }
  const ended = await supervisor.finished(process.process_id);
  expect(ended).toMatchObject({ state: 'exited', exit_code: 4, restart_count: 3 });
  await eventually(() => expect(events).toHaveLength(8));
  expect(events.map(({ payload }) => 'restart_count' in payload && payload.restart_count)).toEqual([
    0, 0, 1, 1, 2, 2, 3, 3,
  ]);
});

test('on-failure leaves a success alone, always does not, and DELETE ends a wait for the next run', async () => {
  const { supervisor, events } = await start();
  const success = await supervisor.spawn({ command: ['true'], restart: { policy: 'on-failure' } });
  expect((await supervisor.finished(success.process.process_id)).state).toBe('exited');
  const again = await supervisor.spawn({
    command: ['true'],
    restart: { policy: 'always', backoff_ms: 600_000 },
  });
  await eventually(async () =>
    expect((await supervisor.get(again.process.process_id)).state).toBe('restarting'),
  );
  expect(await supervisor.remove(again.process.process_id)).toMatchObject({ state: 'exited', exit_code: 0 });
  expect(events.filter(({ event_type }) => event_type === 'process.exited')).toHaveLength(2);
});

test('max_restarts 0 means no restart', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'exit 1',
    restart: { policy: 'always', max_restarts: 0 },
  });
  expect(await supervisor.finished(process.process_id)).toMatchObject({ state: 'exited', restart_count: 0 });
});

test('a time-out ends the whole group and says so; who ignores SIGTERM is killed after the grace', async () => {
  const clock = new ManualClock();
  const { supervisor, events } = await start({ grace_ms: 3_000 }, clock);
  const { process } = await supervisor.spawn({
    command: program('ignore-term.mjs', '2'),
    timeout_ms: 60_000,
  });
  const pids = await eventually(async () => {
    const { stdout } = await outputOf(supervisor, process.process_id);
    const numbers = stdout.trim().split('\n').map(Number);
    expect(numbers).toHaveLength(3);
    return numbers;
  });
  await clock.advance(59_000);
  expect(events).toHaveLength(1);
  await advanceUntil(clock, 100, () => events.length === 2);
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(63_000);
  expect(events[1]).toMatchObject({
    event_type: 'process.exited',
    payload: { signal: 'SIGKILL', exit_code: 137, timed_out: true },
  });
  await advanceUntil(clock, 20, async () => !(await Promise.all(pids.map(isAlive))).includes(true));
});

test('DELETE ends descendants that made a session of their own, and answers also when all had ended', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: program('leave-behind.mjs', 'own-session') });
  await supervisor.finished(process.process_id);
  const pid = Number((await outputOf(supervisor, process.process_id)).stdout);
  expect(await isAlive(pid)).toBe(true);
  expect((await supervisor.remove(process.process_id)).state).toBe('exited');
  expect(await isAlive(pid)).toBe(false);
  expect((await supervisor.remove(process.process_id)).state).toBe('exited');
  await expect(supervisor.remove('unknown')).rejects.toMatchObject({ code: 'not_found' });
});

test('a start that the command is at fault for leaves no folder behind', async () => {
  const { supervisor, directory } = await start();
  const failing = supervisor.spawn({ command: ['no-such-program'], process_id: 'p' });
  await expect(failing).rejects.toMatchObject({ code: 'invalid_request' });
  expect(await readdir(directory)).toEqual([]);
});

test('a start that the disk refuses says so, and the id can be used once the disk is there again', async () => {
  const { supervisor, directory } = await start();
  await rm(directory, { recursive: true });
  await writeFile(directory, 'in its place');
  const request = { command: ['true'], process_id: 'p' };
  await expect(supervisor.spawn(request)).rejects.toMatchObject({
    code: 'outbox_unavailable',
    message: expect.stringContaining('ENOTDIR'),
  });
  await rm(directory);
  await mkdir(directory);
  expect(await supervisor.spawn(request)).toMatchObject({ created: true });
});

test('a start for which no file can be opened is refused for the limit, and not for the command', async () => {
  const { supervisor } = await start();
  const limitFiles = fileLimit();
  await limitFiles(3);
  const refused = await supervisor.spawn({ command: ['true'], process_id: 'p' }).catch((error) => error);
  await limitFiles(1_024);
  expect(refused).toMatchObject({ code: 'too_many_requests' });
  expect(await supervisor.spawn({ command: ['true'], process_id: 'p' })).toMatchObject({ created: true });
});
