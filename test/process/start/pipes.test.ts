import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { makePipes, pipePath, removePipes } from '../../../src/process/start/pipes.ts';
import { eventually } from '../../support/eventually.ts';
import { isAlive, outputOf, program, start } from '../../support/process/harness.ts';
import { scratchFolder } from '../../support/scratch.ts';

const NAMES = ['stdout', 'stderr', 'stdin'] as const;

test('pipes are made for their owner alone, without a program of the system', async () => {
  const folder = scratchFolder();
  vi.stubEnv('PATH', '/nowhere');
  onTestFinished(() => void vi.unstubAllEnvs());
  await makePipes(folder, NAMES);
  for (const path of NAMES.map((name) => pipePath(folder, name))) {
    const stats = statSync(path);
    expect([stats.isFIFO(), (stats.mode & 0o777).toString(8)]).toEqual([true, '600']);
  }
});

test('pipes are not made where something else is, nor in a folder that is not there', async () => {
  const folder = scratchFolder();
  writeFileSync(pipePath(folder, 'stdout'), '');
  await expect(makePipes(folder, NAMES)).rejects.toMatchObject({ code: 'EEXIST' });
  await expect(makePipes(join(folder, 'missing'), NAMES)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('pipes are removed, also where they are gone already, and what cannot be removed is an error', async () => {
  const folder = scratchFolder();
  await makePipes(folder, NAMES);
  await removePipes(folder);
  for (const name of NAMES)
    expect(statSync(pipePath(folder, name), { throwIfNoEntry: false })).toBeUndefined();
  await removePipes(folder);
  mkdirSync(pipePath(folder, 'stdin'));
  await expect(removePipes(folder)).rejects.toMatchObject({ code: 'EISDIR' });
});

test('a descendant that holds the pipes does not delay the end', async () => {
  const { supervisor, events } = await start({ grace_ms: 200 });
  const { process } = await supervisor.spawn({ command: program('leave-behind.mjs') });
  const ended = await supervisor.finished(process.process_id);
  expect(ended).toMatchObject({ state: 'exited', exit_code: 0 });
  await eventually(() => expect(events).toHaveLength(2));
  const pid = Number((await outputOf(supervisor, process.process_id)).stdout);
  expect(await isAlive(pid)).toBe(true);
  await supervisor.remove(process.process_id);
  await eventually(async () => expect(await isAlive(pid)).toBe(false));
});

test('/dev/stdin and /dev/stdout can be opened by the process', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'cat /dev/stdin > /dev/stdout', stdin: 'pipe' });
  await supervisor.writeStdin(process.process_id, { data: [Buffer.from('through')], end: true });
  await supervisor.finished(process.process_id);
  expect((await outputOf(supervisor, process.process_id)).stdout).toBe('through');
});
