import { renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

describe('a name that comes and goes', () => {
  it('as the temporary file of an atomic save is renamed to the saved file', async () => {
    tree.make('f');
    await tree.start();
    const told = await tree.told_since(() => {
      writeFileSync(tree.at('.f.tmp'), 'new');
      renameSync(tree.at('.f.tmp'), tree.at('f'));
    });
    expect(told).toEqual(['create .f.tmp', 'write .f.tmp', 'rename .f.tmp -> f']);
  });

  it('is reported as created and removed', async () => {
    tree.make('./');
    await tree.start();
    const told = await tree.told_since(() => {
      writeFileSync(tree.at('a'), '');
      unlinkSync(tree.at('a'));
    });
    expect(told).toEqual(['create a', 'remove a']);
  });

  it('as a step between two files that change places is part of the renames', async () => {
    tree.make('a', 'b');
    await tree.start();
    const told = await tree.told_since(() => {
      renameSync(tree.at('a'), tree.at('t'));
      renameSync(tree.at('b'), tree.at('a'));
      renameSync(tree.at('t'), tree.at('b'));
    });
    expect(told).toEqual(['rename a -> t', 'rename b -> a', 'rename t -> b']);
  });
});
