import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { disk } from '../../src/watch/disk.ts';
import { nameOf } from '../../src/watch/index/name.ts';
import { WatchedTree } from '../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

describe('the disk', () => {
  it('is looked at without following symbolic links', async () => {
    tree.make('./');
    await tree.start();
    mkdirSync(join(tree.base, 'outside'));
    expect(await tree.told_since(() => symlinkSync(join(tree.base, 'outside'), tree.at('l')))).toEqual([
      'create l',
    ]);
    expect(await tree.told_since(() => writeFileSync(join(tree.base, 'outside', 'f'), ''))).toEqual([]);
    expect(await tree.told_since(() => symlinkSync('.', tree.at('loop')))).toEqual(['create loop']);
  });
});

describe('a look at the disk', () => {
  it('finds a file, a link as itself or followed, nothing, or what cannot be seen', () => {
    tree.make('f', 'd/');
    symlinkSync('f', tree.at('link'));
    symlinkSync('loop', tree.at('loop'));
    const found = disk.probe(tree.at('f'));
    expect(found).toMatchObject({ size: 7, links: 1, mode: expect.any(Number) });
    expect(disk.probe(tree.at('link'), true)).toEqual(found);
    expect(disk.probe(tree.at('link'))).not.toEqual(found);
    expect([disk.probe(tree.at('no')), disk.probe(tree.at('f/below'))]).toEqual(['missing', 'missing']);
    expect(disk.probe(tree.at('loop'), true)).toBe('hidden');
  });

  it('lists a directory with every name, or not at all', () => {
    tree.make('a', 'b', 'd/');
    const odd = Buffer.from([0x62, 0xff]);
    writeFileSync(Buffer.concat([Buffer.from(`${tree.top}/`), odd]), '');
    const names = ['a', 'b', nameOf(odd), 'd'];
    expect(disk.list(tree.top)?.sort()).toEqual(names);
    expect(disk.list(tree.top, 4)?.sort()).toEqual(names);
    expect([disk.list(tree.at('a')), disk.list(tree.at('no')), disk.list(tree.at('a'), 4)]).toEqual([
      null,
      null,
      null,
    ]);
  });

  it('lists no directory with more names than were asked for', () => {
    for (let i = 0; i < 1_000; i++) tree.make(`d/${i}`);
    expect(disk.list(tree.at('d'), 999)).toBeNull();
    expect(disk.list(tree.at('d'), 1_000)).toHaveLength(1_000);
  });

  it('knows the file system of a directory, and nothing of one that is not there', () => {
    tree.make('./');
    expect(disk.fileSystem('/proc')).toMatchObject({ kind: 'pseudo', name: 'proc' });
    expect(disk.fileSystem(tree.at('no'))).toBeNull();
  });
});
