import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

describe('the watch set', () => {
  it('holds one watch per directory and gives it back', async () => {
    tree.make('a/b/', 'c/', 'f');
    await tree.start();
    expect(tree.engine.status().directories_watched).toBe(4);
    await tree.told_since(() => rmSync(tree.at('a'), { recursive: true }));
    expect(tree.engine.status().directories_watched).toBe(2);
  });
});
