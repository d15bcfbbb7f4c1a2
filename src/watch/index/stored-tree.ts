import { Tree } from './tree.ts';
import { TreeNode } from './tree-node.ts';
import type { TreeRow } from './tree-store.ts';

const ROOT_ID = 1;

/** The root's row. At the first start it is written last, so that an incomplete index is recognised. */
interface RootEntry {
  watch_dir: string;
}

type NodeEntry = [
  parent_id: number,
  name: string,
  dev: number,
  ino: number,
  birth: number,
  mode: number,
  uid: number,
  gid: number,
  size: number,
  mtime: number,
];

/** The row that stores a node. */
export function rowOf(node: TreeNode): TreeRow {
  const { dev, ino, birth, mode, uid, gid, size, mtime } = node;
  const entry: NodeEntry = [node.parent?.id ?? 0, node.name, dev, ino, birth, mode, uid, gid, size, mtime];
  return { id: node.id, entry: JSON.stringify(node.parent ? entry : { watch_dir: node.name, entry }) };
}

function nodeOf(id: number, entry: NodeEntry): { node: TreeNode; parent_id: number } {
  const [parent_id, name, dev, ino, birth, mode, uid, gid, size, mtime] = entry;
  return { node: new TreeNode(id, null, name, { dev, ino, birth, mode, uid, gid, size, mtime }), parent_id };
}

/** A tree of which only the path of its root is known. `last_id` is the highest id in use. */
export function emptyTree(watch_dir: string, last_id = ROOT_ID): Tree {
  const nothing = { dev: 0, ino: 0, birth: 0, mode: 0, uid: 0, gid: 0, size: 0, mtime: 0 };
  return new Tree(new TreeNode(ROOT_ID, null, watch_dir, nothing), last_id);
}

/**
 * Builds the last known tree of `watch_dir` from its rows. `first_time` is true if there is none: nothing is stored,
 * the first index was never completed, or it belongs to another directory. `stale` holds the ids of rows to drop.
 */
export async function loadTree(
  watch_dir: string,
  pages: AsyncIterable<TreeRow[]>,
): Promise<{ tree: Tree; first_time: boolean; stale: number[] }> {
  const loaded = new Map<number, { node: TreeNode; parent_id: number }>();
  let root: TreeNode | null = null;
  let last_id = ROOT_ID;
  for await (const page of pages) {
    for (const row of page) {
      last_id = Math.max(last_id, row.id);
      const entry = JSON.parse(row.entry) as NodeEntry | (RootEntry & { entry: NodeEntry });
      if (Array.isArray(entry)) loaded.set(row.id, nodeOf(row.id, entry));
      else if (entry.watch_dir === watch_dir) root = nodeOf(row.id, entry.entry).node;
    }
  }
  if (!root) return { tree: emptyTree(watch_dir, last_id), first_time: true, stale: [...loaded.keys()] };
  const tree = new Tree(root, last_id);
  const stale: number[] = [];
  for (const { node, parent_id } of loaded.values()) {
    node.parent = parent_id === root.id ? root : (loaded.get(parent_id)?.node ?? null);
    if (node.parent) tree.restore(node);
    else stale.push(node.id);
  }
  return { tree, first_time: false, stale };
}
