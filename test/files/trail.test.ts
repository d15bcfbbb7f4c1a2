import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Pack } from '../../src/files/archive/pack.ts';
import { NameLocks } from '../../src/files/change/name-locks.ts';
import { removePath } from '../../src/files/change/remove.ts';
import { Directory } from '../../src/files/directory.ts';
import { OwnPlaces } from '../../src/files/own-places.ts';
import { Trail } from '../../src/files/trail.ts';
import { scratchFolder } from '../support/scratch.ts';

const own = new OwnPlaces([]);
const openFiles = () => readdirSync('/proc/self/fd').length;

/** Makes directories one in the other, deeper than a path can be. */
function makeDeep(folder: string, levels: number): void {
  let fd = openSync(folder, 'r');
  for (let i = 0; i < levels; i++) {
    mkdirSync(`/proc/self/fd/${fd}/deep`);
    if (i % 100 === 0) writeFileSync(`/proc/self/fd/${fd}/file`, 'x');
    const next = openSync(`/proc/self/fd/${fd}/deep`, 'r');
    closeSync(fd);
    fd = next;
  }
  closeSync(fd);
}

it('a tree of any depth is removed', async () => {
  const folder = scratchFolder();
  makeDeep(folder, 5_000);
  const before = openFiles();
  await removePath({ path: join(folder, 'deep'), recursive: true }, { own, locks: new NameLocks() });
  expect([readdirSync(folder), openFiles()]).toEqual([['file'], before]);
});

it('a wide tree is removed, also where its names are read in parts', async () => {
  const folder = scratchFolder();
  for (let i = 0; i < 400; i++) mkdirSync(join(folder, `top/a${i % 20}/b${i}/c`), { recursive: true });
  for (let i = 0; i < 400; i++) writeFileSync(join(folder, `top/a${i % 20}/b${i}/f${i}`), '');
  symlinkSync('..', join(folder, 'top/a1/link'));
  await removePath({ path: join(folder, 'top'), recursive: true }, { own, locks: new NameLocks() });
  expect(readdirSync(folder)).toEqual([]);
});

it('a removal ends with its client', async () => {
  const folder = scratchFolder();
  makeDeep(folder, 50);
  const work = removePath(
    { path: join(folder, 'deep'), recursive: true, signal: AbortSignal.abort() },
    { own, locks: new NameLocks() },
  );
  await expect(work).rejects.toThrow(/abort/i);
  expect(existsSync(join(folder, 'deep'))).toBe(true);
});

it('a way back leads where it came from, whatever is moved meanwhile', async () => {
  const folder = scratchFolder();
  mkdirSync(join(folder, 'top/a/b/c/d'), { recursive: true });
  mkdirSync(join(folder, 'outside'));
  await using top = await Directory.open(join(folder, 'top'), own);
  await using trail = new Trail(top, own);
  for (const name of ['a', 'b', 'c', 'd']) await trail.enter(name);
  renameSync(join(folder, 'top/a/b/c'), join(folder, 'outside/c'));
  await trail.leave(); // where it is now: it came through this very directory
  expect([trail.depth, trail.name]).toEqual([3, 'c']);
  await trail.leave(); // `..` is outside now
  expect([trail.depth, trail.name]).toEqual([2, 'b']);
});

it('a directory that takes the place of another is not come back to', async () => {
  const folder = scratchFolder();
  mkdirSync(join(folder, 'top/a/b/c'), { recursive: true });
  await using top = await Directory.open(join(folder, 'top'), own);
  await using trail = new Trail(top, own);
  for (const name of ['a', 'b', 'c']) await trail.enter(name);
  renameSync(join(folder, 'top/a/b/c'), join(folder, 'c'));
  renameSync(join(folder, 'top/a/b'), join(folder, 'b'));
  mkdirSync(join(folder, 'top/a/b'));
  await trail.leave();
  expect([trail.depth, trail.name]).toEqual([1, 'a']);
});

it('packing holds few files open, however deep it is', async () => {
  const folder = scratchFolder();
  const deep = join(folder, 'd/'.repeat(400));
  mkdirSync(deep, { recursive: true });
  writeFileSync(join(deep, 'file'), Buffer.alloc(300_000));
  const before = openFiles();
  const directory = await Directory.open(folder, own);
  for await (const _ of await Pack.ofDirectory(directory, {
    own,
    signal: new AbortController().signal,
    copy: null,
  })) {
    expect(openFiles()).toBeLessThan(before + 6);
  }
  expect(openFiles()).toBe(before);
});
