import { beforeEach, describe, expect, it } from 'vitest';
import { Vanished } from '../../../src/watch/classify/vanished.ts';
import { VANISH_MS } from '../../../src/watch/index/limits.ts';
import { emptyTree } from '../../../src/watch/index/stored-tree.ts';
import type { Tree } from '../../../src/watch/index/tree.ts';
import type { TreeNode } from '../../../src/watch/index/tree-node.ts';

let tree: Tree;
let vanished: Vanished;

beforeEach(() => {
  tree = emptyTree('/w');
  vanished = new Vanished();
});

function added(dir: TreeNode, name: string, mode = 0o100644): TreeNode {
  const ino = tree.size;
  return tree.add(dir, name, {
    dev: 0,
    ino,
    birth: 1,
    mode,
    uid: 0,
    gid: 0,
    size: 0,
    mtime: 1,
    ctime: 1,
    links: 1,
  });
}

/** The nodes that count as removed at a time, once all names up to a generation were observed. */
const expired = (now_ms: number, oldest_generation: number, max = 100, isReachable = () => true) => [
  ...vanished.expired(tree, now_ms, oldest_generation, max, isReachable),
];

describe('a missing node', () => {
  it('counts as removed only after a while, so that it can reappear under another name', () => {
    const node = added(tree.root, 'a');
    vanished.add(node, 1_000, 5);
    vanished.add(node, 2_000, 9); // it is missing since the first time
    expect([vanished.size, vanished.nextDueMs(), vanished.firstAfter()]).toEqual([1, 1_000 + VANISH_MS, 5]);
    expect(expired(1_000 + VANISH_MS - 1, 6)).toEqual([]);
    expect(expired(1_000 + VANISH_MS, 6)).toEqual([node]);
  });

  it('does not count as removed while a name that was signalled before is not observed', () => {
    const node = added(tree.root, 'a');
    vanished.add(node, 0, 5);
    expect(expired(10_000, 5)).toEqual([]);
    expect(expired(10_000, 6)).toEqual([node]);
  });

  it('is forgotten when it is found again or is gone from the tree', () => {
    const found = added(tree.root, 'a');
    const removed = added(tree.root, 'b');
    vanished.add(found, 0, 0);
    vanished.add(removed, 0, 0);
    found.missing_since_ms = -1;
    tree.remove(removed);
    expect([vanished.nextDueMs(), vanished.firstAfter()]).toEqual([null, Number.POSITIVE_INFINITY]);
    expect(vanished.size).toBe(0);
    vanished.add(removed, 0, 0);
    expect(vanished.size).toBe(0);
  });

  it('below a directory that is not at its place goes or stays with that directory', () => {
    const dir = added(tree.root, 'd', 0o040755);
    const node = added(dir, 'a');
    vanished.add(node, 0, 0);
    expect(expired(10_000, 1, 100, () => false)).toEqual([]);
    expect([vanished.size, node.missing_since_ms]).toEqual([0, -1]);
  });

  it('is removed in its turn where there are more than fit into one pass', () => {
    const nodes = ['a', 'b', 'c'].map((name) => added(tree.root, name));
    for (const node of nodes) vanished.add(node, 0, 0);
    expect(expired(10_000, 1, 2)).toEqual(nodes.slice(0, 2));
    for (const node of nodes.slice(0, 2)) tree.remove(node);
    expect(expired(10_000, 1, 2)).toEqual(nodes.slice(2));
  });
});
