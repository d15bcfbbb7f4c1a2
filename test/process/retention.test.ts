import { readdir } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { expiredProcesses } from '../../src/process/retention.ts';
import { eventually } from '../support/eventually.ts';
import { listOf, start } from '../support/process/harness.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
const MIB = 1024 * 1024;

test('ended processes go by age, by number and by size, the oldest first', () => {
  const ended = (process_id: string, exited_at_ms: number, size_bytes = 0) => ({
    process_id,
    exited_at_ms,
    size_bytes,
  });
  expect(expiredProcesses([ended('old', 0), ended('new', 1)], DAY_MS + 1)).toEqual(['old']);
  const many = Array.from({ length: 1_002 }, (_, i) => ended(`p${i}`, i));
  expect(expiredProcesses(many, 2_000).sort()).toEqual(['p0', 'p1']);
  expect(
    expiredProcesses([ended('a', 1, 100 * MIB), ended('b', 2, 100 * MIB), ended('c', 3, 100 * MIB)], 4),
  ).toEqual(['a']);
});

test('the oldest ended process makes room, with its folder', async () => {
  const { supervisor, directory } = await start();
  const first = await supervisor.spawn({ command: ['true'], process_id: 'first' });
  await supervisor.finished(first.process.process_id);
  for (let round = 0; round < 10; round++) {
    const started = await Promise.all(
      Array.from({ length: 100 }, () => supervisor.spawn({ command: ['true'] })),
    );
    await Promise.all(started.map(({ process }) => supervisor.finished(process.process_id).catch(() => {})));
  }
  const isListed = () => supervisor.get('first').catch(() => null);
  while (await isListed()) await turn();
  // Its folder is being removed now.
  const again = await supervisor.spawn({ command: ['sleep', '1000'], process_id: 'first' });
  expect(again.created).toBe(true);
  await eventually(async () => expect(await listOf(supervisor)).toHaveLength(1_001));
  await eventually(async () => expect(await readdir(directory)).toHaveLength(1_001));
  expect(await supervisor.get('first')).toMatchObject({ state: 'running' });
}, 120_000);

test('an ended process makes room for a new one with its id, if the request asks for that', async () => {
  const { supervisor } = await start();
  const request = { shell: 'exit 1', process_id: 'main' };
  const first = await supervisor.spawn(request);
  await supervisor.finished('main');
  const second = await supervisor.spawn(request, { replace_ended: true });
  expect(second.created).toBe(true);
  expect(second.process.pid).not.toBe(first.process.pid);
});
