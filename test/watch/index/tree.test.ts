import { beforeEach, describe, expect, it } from 'vitest';
import { emptyTree } from '../../../src/watch/index/stored-tree.ts';
import type { Tree } from '../../../src/watch/index/tree.ts';

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

describe('the tree', () => {
  it('changes one node when a directory moves', () => {
    const dir = tree.add(tree.root, 'd', newDirectory());
    const file = tree.add(dir, 'f', newFile());
    tree.commit();
    tree.move(dir, tree.root, 'e');
    expect(tree.path(file)).toBe('/w/e/f');
    expect(tree.at('/w/e/f')).toBe(file);
    expect(tree.at('/w/d/f')).toBeUndefined();
    expect(tree.changes()).toEqual({ put: [dir], drop: [] });
  });

  it('finds every name of a hard-linked file by its identity', () => {
    const linked = newFile();
    const a = tree.add(tree.root, 'a', linked);
    const b = tree.add(tree.root, 'b', linked);
    tree.add(tree.root, 'c', { ...linked, birth: 9 });
    expect(new Set(tree.withIdentity(linked))).toEqual(new Set([a, b]));
    tree.remove(b);
    expect(tree.withIdentity(linked)).toEqual([a]);
  });

  it('undoes every kind of change in reverse order', () => {
    const old = newFile();
    const dir = tree.add(tree.root, 'd', newDirectory());
    const file = tree.add(dir, 'f', old);
    tree.commit();
    tree.update(file, newFile());
    tree.setUnreported(file, true);
    tree.move(file, tree.root, 'g');
    tree.remove(dir);
    const added = tree.add(tree.root, 'h', newFile());
    tree.rollback();
    expect(tree.path(file)).toBe('/w/d/f');
    expect(tree.withIdentity(old)).toEqual([file]);
    expect(file.unreported).toBe(false);
    expect(dir.known).toBe(true);
    expect(added.known).toBe(false);
    expect(tree.size).toBe(3);
    expect(tree.unstored).toBe(0);
  });

  it('stores what is new or changed, and drops what is gone', () => {
    const [kept, gone] = [tree.add(tree.root, 'a', newFile()), tree.add(tree.root, 'b', newFile())];
    tree.commit();
    tree.remove(gone);
    tree.discard(77);
    tree.markChanged(kept);
    expect(tree.changes()).toEqual({ put: [kept], drop: [77, gone.id] });
    expect(tree.unstored).toBe(3);
  });
});
