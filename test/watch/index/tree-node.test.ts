import { beforeEach, describe, expect, it } from 'vitest';
import { emptyTree } from '../../../src/watch/index/stored-tree.ts';
import type { Tree } from '../../../src/watch/index/tree.ts';
import { descendants, directories } from '../../../src/watch/index/tree-node.ts';

let last_ino = 0;

function stat(mode: number) {
  const ino = ++last_ino;
  return { dev: 0, ino, birth: 1, mode, uid: 0, gid: 0, size: 1, mtime: 1, ctime: 1, links: 1 };
}

const newFile = () => stat(0o100644);
const newDirectory = () => stat(0o040755);

let tree: Tree;

beforeEach(() => {
  tree = emptyTree('/w');
});

describe('a node', () => {
  it('is walked with children before their directory, and directories with parents first', () => {
    const dir = tree.add(tree.root, 'd', newDirectory());
    const below = tree.add(dir, 'e', newDirectory());
    const file = tree.add(below, 'f', newFile());
    expect([...descendants(dir)]).toEqual([file, below]);
    expect([...directories(dir)]).toEqual([dir, below]);
    expect([...directories(file)]).toEqual([]);
  });
});
