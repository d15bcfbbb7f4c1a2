import { expect, test } from 'vitest';
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
