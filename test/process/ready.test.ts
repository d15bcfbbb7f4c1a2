import { expect, test } from 'vitest';
import { ReadyWatch } from '../../src/process/ready.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { outputOf, program, start } from '../support/process/harness.ts';

test('a process is ready once its text was written, even in pieces', async () => {
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

test('readiness that comes before the start is complete is noticed', async () => {
  const { supervisor } = await start();
  const starts = Array.from({ length: 50 }, () =>
    supervisor.spawn({ shell: 'echo up; exec cat', stdin: 'pipe', ready: { log: 'up' } }),
  );
  for (const { process } of await Promise.all(starts)) {
    expect(await supervisor.wait(process.process_id, { for: 'ready' })).toMatchObject({ ready: true });
  }
});

test('a process is ready once something listens on its port, and waiting for one that ends first is a conflict', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    command: program('listen.mjs', '47391'),
    stdin: 'pipe',
    ready: { port: 47_391 },
  });
  await eventually(async () =>
    expect((await outputOf(supervisor, process.process_id)).stdout).toBe('starting\n'),
  );
  expect((await supervisor.get(process.process_id)).ready).toBe(false);
  const waiting = supervisor.wait(process.process_id, { for: 'ready' });
  await supervisor.writeStdin(process.process_id, { data: [Buffer.from('\n')] });
  expect(await waiting).toMatchObject({ ready: true });
  const failing = await supervisor.spawn({ command: ['false'], ready: { port: 47_392 } });
  await expect(supervisor.wait(failing.process.process_id, { for: 'ready' })).rejects.toMatchObject({
    code: 'conflict',
  });
});

test('however many wait for a port, the sockets are read for all of them together', async () => {
  const clock = new ManualClock();
  const ready: number[] = [];
  const watches = Array.from(
    { length: 500 },
    (_, index) => new ReadyWatch(clock, { port: 1 }, () => ready.push(index)),
  );
  await eventually(() => expect(clock.timers).toBe(1));
  for (const watch of watches) watch.close();
  await clock.advance(1_000);
  expect([clock.timers, ready]).toEqual([0, []]);
});
