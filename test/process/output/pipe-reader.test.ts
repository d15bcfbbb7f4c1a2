import { expect, test } from 'vitest';
import { isAlive, program, start } from '../../support/process/harness.ts';

const MIB = 1024 * 1024;

test('a flood of output takes no more memory, and every kept byte is right', async () => {
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
