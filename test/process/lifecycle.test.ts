import { expect, test } from 'vitest';
import { ApiError } from '../../src/contract/errors.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { isAlive, outputOf, program, start, until } from '../support/process/harness.ts';

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
    await until(async () => (await state()) === 'restarting' && events.length === 2 * (index + 1));
    await clock.advance(delay_ms - 1);
    expect(await state()).toBe('restarting');
    await clock.advance(1);
    await until(() => events.length > 2 * (index + 1));
  }
  const ended = await supervisor.finished(process.process_id);
  expect(ended).toMatchObject({ state: 'exited', exit_code: 4, restart_count: 3 });
  await until(() => events.length === 8);
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
  await until(async () => (await supervisor.get(again.process.process_id)).state === 'restarting');
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
  const pids = await until(async () => {
    const { stdout } = await outputOf(supervisor, process.process_id);
    const numbers = stdout.trim().split('\n').map(Number);
    return numbers.length === 3 ? numbers : null;
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

test('waiting ends with the end, the time or the caller', async () => {
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

test('a process is ready once its text was written, also in pieces', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'printf "now liste" >&2; read x; printf "ning" >&2; read x',
    stdin: 'pipe',
    ready: { log: 'listening' },
  });
  expect(process.ready).toBe(false);
  const waiting = supervisor.wait(process.process_id, { for: 'ready' });
  await supervisor.writeStdin(process.process_id, { data: [Buffer.from('\n')] });
  expect(await waiting).toMatchObject({ state: 'running', ready: true });
});

test('a process that is ready before its start is done is ready', async () => {
  const { supervisor } = await start();
  const starts = Array.from({ length: 50 }, () =>
    supervisor.spawn({ shell: 'echo up; exec cat', stdin: 'pipe', ready: { log: 'up' } }),
  );
  for (const { process } of await Promise.all(starts)) {
    expect(await supervisor.wait(process.process_id, { for: 'ready' })).toMatchObject({ ready: true });
  }
});

test('a process is ready once something listens on its port, and one that ends before is a conflict', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    command: program('listen.mjs', '47391'),
    stdin: 'pipe',
    ready: { port: 47_391 },
  });
  await until(async () => (await outputOf(supervisor, process.process_id)).stdout === 'starting\n');
  expect((await supervisor.get(process.process_id)).ready).toBe(false);
  const waiting = supervisor.wait(process.process_id, { for: 'ready' });
  await supervisor.writeStdin(process.process_id, { data: [Buffer.from('\n')] });
  expect(await waiting).toMatchObject({ ready: true });
  const failing = await supervisor.spawn({ command: ['false'], ready: { port: 47_392 } });
  await expect(supervisor.wait(failing.process.process_id, { for: 'ready' })).rejects.toMatchObject({
    code: 'conflict',
  });
});

test('events that cannot be stored are kept, tried again and stored in order', async () => {
  const clock = new ManualClock();
  const stored: string[] = [];
  let is_broken = true;
  const { supervisor } = await start(
    {
      emit: async (event) => {
        if (is_broken) throw new Error('disk');
        stored.push(event.event_type);
      },
    },
    clock,
  );
  const { process } = await supervisor.spawn({ command: ['true'] });
  expect(await supervisor.finished(process.process_id)).toMatchObject({ state: 'exited' });
  await clock.advance(60_000);
  expect(stored).toEqual([]);
  is_broken = false;
  await clock.advance(6_000);
  await until(() => stored.length === 2);
  expect(stored).toEqual(['process.started', 'process.exited']);
});

test('children get the plain environment, the request and the mark, and not the daemon environment', async () => {
  const { supervisor } = await start({ environment: () => ({ PATH: '/usr/bin:/bin', PLAIN: 'p' }) });
  process.env.DAEMON_SECRET_OF_TEST = 'secret';
  const { process: view } = await supervisor.spawn({ command: ['env'], env: { ASKED: 'a' } });
  await supervisor.finished(view.process_id);
  const lines = (await outputOf(supervisor, view.process_id)).stdout.trim().split('\n').sort();
  expect(lines).toEqual([
    'ASKED=a',
    'PATH=/usr/bin:/bin',
    'PLAIN=p',
    expect.stringMatching(/^SANDBOXD_PROCESS_MARK=/),
  ]);
});

test.runIf(process.getuid?.() === 0)(
  'a process runs as another account, without the daemon groups',
  async () => {
    const { supervisor } = await start();
    for (const pty of [undefined, { cols: 80, rows: 24 }]) {
      const { process } = await supervisor.spawn({
        shell: 'id -u; id -G; echo $HOME; echo out > /dev/stdout',
        user: 'nobody',
        cwd: '/',
        ...(pty && { pty }),
      });
      await supervisor.finished(process.process_id);
      const { stdout } = await outputOf(supervisor, process.process_id);
      expect(stdout.replaceAll('\r', '')).toBe('65534\n65534\n/nonexistent\nout\n');
    }
  },
);

test('a child is chosen before the daemon when memory runs out', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'read x; cat /proc/self/oom_score_adj',
    stdin: 'pipe',
  });
  await until(async () => {
    const { readFile } = await import('node:fs/promises');
    return (await readFile(`/proc/${process.pid}/oom_score_adj`, 'latin1')).trim() !== '0';
  });
  await supervisor.writeStdin(process.process_id, { data: [], end: true });
  await supervisor.finished(process.process_id);
  expect(Number((await outputOf(supervisor, process.process_id)).stdout)).toBeGreaterThan(0);
});
