import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { makePipes, pipePath, removePipes } from '../../../src/process/start/pipes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const NAMES = ['stdout', 'stderr', 'stdin'] as const;

test('pipes are made for their owner alone, without a program of the system', async () => {
  const folder = scratchFolder();
  vi.stubEnv('PATH', '/nowhere');
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
