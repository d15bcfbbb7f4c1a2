import { describe, expect, it } from 'vitest';
import { emptyTree, loadTree, rowOf } from '../../../src/watch/index/stored-tree.ts';
import type { TreeRow } from '../../../src/watch/index/tree-store.ts';

const stat = {
  dev: 0,
  ino: 5,
  birth: 1,
  mode: 0o040755,
  uid: 0,
  gid: 0,
  size: 1,
  mtime: 1.25,
  ctime: 1,
  links: 1,
};

async function* pages(...rows: TreeRow[]): AsyncIterable<TreeRow[]> {
  for (const row of rows) yield [row];
}

describe('the stored tree', () => {
  it('is the same when it is loaded, in any order of its rows', async () => {
    const tree = emptyTree('/w');
    const dir = tree.add(tree.root, 'd', stat);
    const file = tree.add(dir, 'f', { ...stat, ino: 6, mode: 0o100644 });
    const loaded = await loadTree('/w', pages(rowOf(file), rowOf(dir), rowOf(tree.root)));
    expect(loaded).toMatchObject({ first_time: false, stale: [] });
    expect(loaded.tree.size).toBe(3);
    expect(loaded.tree.at('/w/d/f')).toMatchObject({ id: file.id, ino: 6, mtime: 1.25, is_directory: false });
    expect(loaded.tree.unstored).toBe(0);
  });

  it.each([
    ['the row of its root is missing', '/w', false],
    ['it belongs to another directory', '/other', true],
  ])('is built from the beginning if %s', async (_reason, watch_dir, with_root) => {
    const tree = emptyTree('/w');
    const dir = tree.add(tree.root, 'd', stat);
    const rows = [rowOf(dir), ...(with_root ? [rowOf(tree.root)] : [])];
    const loaded = await loadTree(watch_dir, pages(...rows));
    expect(loaded).toMatchObject({ first_time: true, stale: [dir.id] });
    expect(loaded.tree.size).toBe(1);
    expect(loaded.tree.add(loaded.tree.root, 'new', stat).id).toBeGreaterThan(dir.id);
  });

  it('drops a row whose parent is missing', async () => {
    const tree = emptyTree('/w');
    const dir = tree.add(tree.root, 'd', stat);
    const file = tree.add(dir, 'f', { ...stat, ino: 6 });
    const { tree: loaded, stale } = await loadTree('/w', pages(rowOf(tree.root), rowOf(file)));
    expect(stale).toEqual([file.id]);
    expect(loaded.size).toBe(1);
  });
});
