import { linkSync, unlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

describe('a change', () => {
  it('of a hard-linked file is reported for each of its known names', async () => {
    tree.make('a');
    await tree.start();
    expect(await tree.told_since(() => linkSync(tree.at('a'), tree.at('b')))).toEqual(['create b']);
    expect((await tree.told_since(() => tree.append('b'))).sort()).toEqual(['write a', 'write b']);
    expect(await tree.told_since(() => unlinkSync(tree.at('a')))).toEqual(['remove a']);
  });

  it('by a burst of writes is reported once, after the last of them', async () => {
    tree.make('a');
    await tree.start();
    let told_at = 0;
    tree.store.onCommit = () => {
      told_at = Date.now();
    };
    let last_at = 0;
    const told = await tree.told_since(async () => {
      for (let i = 0; i < 5; i++) {
        tree.append('a');
        last_at = Date.now();
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    expect(told).toEqual(['write a']);
    expect(told_at).toBeGreaterThanOrEqual(last_at);
  });
});
