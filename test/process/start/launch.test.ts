import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readAllStats } from '../../../src/base/linux/procfs.ts';
import { start, until } from '../../support/process/harness.ts';

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
  await until(() => events.length === 20);
  const [files_before, listeners_before] = [open(), listeners()];
  for (let round = 0; round < 10; round++) await run(99);
  await until(() => events.length === 2_000);
  await until(() => open() <= files_before);
  expect(listeners()).toBeLessThanOrEqual(listeners_before);
  const zombies = [...(await readAllStats()).values()].filter(
    ({ parent, state }) => parent === process.pid && state === 'Z',
  );
  expect(zombies).toEqual([]);
});
