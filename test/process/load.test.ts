import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readAllStats } from '../../src/base/linux/procfs.ts';
import { isAlive, program, start, until } from '../support/process/harness.ts';

const MIB = 1024 * 1024;

test('1 000 short processes leave no zombie, no file open and no listener', async () => {
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

test('a flood of output leaves memory flat and every kept byte right', async () => {
  const { supervisor } = await start();
  /** The most memory in use while a process writes so much. */
  const flooded = async (size_bytes: number) => {
    let most_bytes = 0;
    const look = setInterval(() => {
      most_bytes = Math.max(most_bytes, process.memoryUsage().rss);
    }, 20);
    const { process: flood } = await supervisor.spawn({ command: program('flood.mjs', String(size_bytes)) });
    await supervisor.finished(flood.process_id);
    clearInterval(look);
    return { flood, most_bytes };
  };
  const total = 512 * MIB;
  const { most_bytes: least_bytes } = await flooded(64 * MIB);
  const { flood, most_bytes } = await flooded(total);
  expect(most_bytes - least_bytes).toBeLessThan(32 * MIB);
  const { stdout } = await supervisor.outputTail(flood.process_id, 8 * MIB);
  expect(stdout.length).toBe(8 * MIB);
  const expected = Buffer.alloc(65_536, 'abcdefghijklmno\n');
  for (let at = 0; at < stdout.length; at += expected.length) {
    expected.write(((total - 8 * MIB + at) / expected.length).toString(16).padStart(15, '0'));
    expect(stdout.subarray(at, at + expected.length).equals(expected)).toBe(true);
  }
  expect(await isAlive(flood.pid)).toBe(false);
});
