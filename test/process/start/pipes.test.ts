import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makePipes, pipePath, removePipes } from '../../../src/process/start/pipes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const NAMES = ['stdout', 'stderr', 'stdin'] as const;

test('the pipes of several processes are made at once, for their owner alone', async () => {
  const folders = [scratchFolder(), scratchFolder()];
  await makePipes(folders);
  for (const path of folders.flatMap((folder) => NAMES.map((name) => pipePath(folder, name)))) {
    const stats = statSync(path);
    expect([stats.isFIFO(), (stats.mode & 0o777).toString(8)]).toEqual([true, '600']);
  }
});

test('pipes are not made where something else is, nor in a folder that is not there', async () => {
  const folder = scratchFolder();
  writeFileSync(pipePath(folder, 'stdout'), '');
  await expect(makePipes([folder])).rejects.toThrow('mkfifo');
  await expect(makePipes([join(folder, 'missing')])).rejects.toThrow('mkfifo');
});

test('a machine without mkfifo(1) is told of, with where it comes from', async () => {
  await expect(makePipes([scratchFolder()], 'no-mkfifo-here')).rejects.toMatchObject({
    code: 'outbox_unavailable',
    message: expect.stringContaining('coreutils'),
  });
});

test('pipes are removed, also where they are gone already, and what cannot be removed is an error', async () => {
  const folder = scratchFolder();
  await makePipes([folder]);
  await removePipes(folder);
  for (const name of NAMES)
    expect(statSync(pipePath(folder, name), { throwIfNoEntry: false })).toBeUndefined();
  await removePipes(folder);
  mkdirSync(pipePath(folder, 'stdin'));
  await expect(removePipes(folder)).rejects.toMatchObject({ code: 'EISDIR' });
});
