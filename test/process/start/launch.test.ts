import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { ProcessTable } from '../../../src/base/linux/process-table.ts';
import { eventually } from '../../support/eventually.ts';
import { outputOf, start } from '../../support/process/harness.ts';
import { scratchFolder } from '../../support/scratch.ts';

test('1 000 short processes leave no zombie, no open file and no listener', async () => {
  const { supervisor, events } = await start();
  const run = async (count: number) => {
    const started = await Promise.all(
      Array.from({ length: count }, () => supervisor.spawn({ command: ['true'] })),
    );
    await Promise.all(started.map(({ process }) => supervisor.wait(process.process_id, { for: 'exit' })));
  };
  const open = () => readdirSync('/proc/self/fd').length;
  const listeners = () => process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);
  await run(10);
  await eventually(() => expect(events).toHaveLength(20));
  const [files_before, listeners_before] = [open(), listeners()];
  for (let round = 0; round < 10; round++) await run(99);
  await eventually(() => expect(events).toHaveLength(2_000));
  await eventually(() => expect(open()).toBeLessThanOrEqual(files_before));
  expect(listeners()).toBeLessThanOrEqual(listeners_before);
  const zombies = [...(await new ProcessTable(systemClock, 'MARK').readAll()).values()].filter(
    ({ parent, state }) => parent === process.pid && state === 'Z',
  );
  expect(zombies).toEqual([]);
});

test('a script that names no interpreter is run by a shell, as a shell would', async () => {
  const { supervisor } = await start();
  const script = join(scratchFolder(), 'script');
  writeFileSync(script, 'echo "$0 $1"; exit 4\n', { mode: 0o755 });
  const { process } = await supervisor.spawn({ command: [script, 'word'] });
  expect(await supervisor.finished(process.process_id)).toMatchObject({ exit_code: 4 });
  expect((await outputOf(supervisor, process.process_id)).stdout).toBe(`${script} word\n`);
});

test('a process blocks and ignores no signal, whatever the daemon does', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'grep -E "^Sig(Blk|Ign)" /proc/self/status; readlink /proc/self/fd/0',
  });
  await supervisor.finished(process.process_id);
  expect((await outputOf(supervisor, process.process_id)).stdout).toBe(
    `SigBlk:\t${'0'.repeat(16)}\nSigIgn:\t${'0'.repeat(16)}\n/dev/null\n`,
  );
});

test('a process that a real-time signal ends has crashed with its number', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'kill -37 $$' });
  expect(await supervisor.finished(process.process_id)).toMatchObject({
    state: 'crashed',
    exit_code: 128 + 37,
    signal: 'SIGRTMIN+3',
  });
});

test('arguments and variables that are too long for the kernel are refused by name', async () => {
  const { supervisor } = await start();
  const env = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`V${i}`, 'x'.repeat(100_000)]));
  await expect(supervisor.spawn({ command: ['true'], env })).rejects.toMatchObject({
    message: expect.stringContaining('too long'),
    details: { field: 'command' },
  });
});
