import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { EngineOptions } from '../../../src/watch/engine.ts';
import { until, WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

const watched = (options: Partial<EngineOptions> = {}) => {
  tree = new WatchedTree(options);
  return tree;
};

afterEach(() => tree.close());

describe('a watch_dir', () => {
  it('that does not exist is waited for, and then everything in it is reported', async () => {
    watched();
    await tree.start();
    expect(tree.engine.status().state).toBe('waiting');
    tree.make('s/c');
    await until(
      () => tree.told().length === 2,
      () => tree.told(),
    );
    expect(tree.told()).toEqual(['create s', 'create s/c']);
    expect(tree.engine.status().state).toBe('watching');
  });

  it('may be removed and made again', async () => {
    watched().make('a', 's/b');
    await tree.start();
    rmSync(tree.top, { recursive: true });
    await until(
      () => tree.engine.status().state === 'waiting' && tree.told().length === 3,
      () => tree.told(),
    );
    expect(tree.told().sort()).toEqual(['remove a', 'remove s', 'remove s/b']);
    tree.make('a');
    await until(
      () => tree.told().length === 4,
      () => tree.told(),
    );
    expect(await tree.told_since(() => tree.append('a'))).toEqual(['write a']);
  });

  it('may be replaced by another directory', async () => {
    watched().make('a', 's/b');
    await tree.start();
    const told = await tree.told_since(() => {
      mkdirSync(join(tree.base, 'other', 's'), { recursive: true });
      writeFileSync(join(tree.base, 'other', 'n'), '');
      renameSync(tree.top, join(tree.base, 'former'));
      renameSync(join(tree.base, 'other'), tree.top);
    });
    expect(told.sort()).toEqual(['create n', 'create s', 'remove a', 'remove s', 'remove s/b']);
    expect(await tree.told_since(() => writeFileSync(tree.at('s/x'), ''))).toEqual(['create s/x']);
    expect(await tree.told_since(() => writeFileSync(join(tree.base, 'former', 'x'), ''))).toEqual([]);
  });

  it('may be a symbolic link and is reported by its own name', async () => {
    watched();
    mkdirSync(join(tree.base, 'real'));
    symlinkSync('real', tree.top);
    await tree.start();
    expect(await tree.told_since(() => writeFileSync(join(tree.base, 'real', 'a'), ''))).toEqual([
      'create a',
    ]);
  });
});
