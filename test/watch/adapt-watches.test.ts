import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WatchedTree } from '../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

describe('a directory', () => {
  it('that is new is searched for what was made in it before it was watched', async () => {
    tree.make('./');
    await tree.start();
    const told = await tree.told_since(() => {
      mkdirSync(tree.at('a/b/c'), { recursive: true });
      writeFileSync(tree.at('a/b/c/f'), '');
      writeFileSync(tree.at('a/g'), '');
    });
    expect([...told].sort()).toEqual([
      'create a',
      'create a/b',
      'create a/b/c',
      'create a/b/c/f',
      'create a/g',
    ]);
  });

  it('made again under the same name is watched again', async () => {
    tree.make('s/a');
    await tree.start();
    const told = await tree.told_since(() => {
      rmSync(tree.at('s'), { recursive: true });
      mkdirSync(tree.at('s'));
      writeFileSync(tree.at('s/b'), '');
    });
    expect(told).toEqual(['remove s/a', 'remove s', 'create s', 'create s/b']);
    expect(await tree.told_since(() => tree.append('s/b'))).toEqual(['write s/b']);
  });

  it('that is moved in is watched with everything in it', async () => {
    tree.make('./');
    await tree.start();
    const outside = join(tree.base, 'in');
    mkdirSync(join(outside, 'u'), { recursive: true });
    writeFileSync(join(outside, 'u', 'b'), 'x');
    expect(await tree.told_since(() => renameSync(outside, tree.at('in')))).toEqual([
      'create in',
      'create in/u',
      'create in/u/b',
    ]);
    expect(await tree.told_since(() => tree.append('in/u/b'))).toEqual(['write in/u/b']);
  });

  it('that is moved out is no longer watched', async () => {
    tree.make('t/b');
    await tree.start();
    const outside = join(tree.base, 'out');
    expect(await tree.told_since(() => renameSync(tree.at('t'), outside))).toEqual([
      'remove t/b',
      'remove t',
    ]);
    expect(await tree.told_since(() => writeFileSync(join(outside, 'n'), ''))).toEqual([]);
  });
});
