import { isDirectory, type KeptFileStat } from './file-stat.ts';

/**
 * A known file or directory. A node holds its name and its parent, not its path, so that moving a directory changes
 * one node. `birth` and `mtime` are ms since the epoch, `size` is in bytes.
 */
export class TreeNode {
  readonly id: number;
  parent: TreeNode | null;
  name: string;
  dev: number;
  ino: number;
  birth: number;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  mtime: number;
  /** Children by name; null if there are none. */
  children: Map<string, TreeNode> | null = null;
  /** The next node with the same inode number: a hard link, or a file on another file system. */
  next_of_inode: TreeNode | null = null;
  /** False after the node was removed from the tree. */
  known = true;
  /** The content has not been reported yet, or may have changed again within one tick of the kernel's clock. */
  unreported = false;
  /** When it was found missing from its place, in monotonic ms; -1 while it is present. */
  missing_since_ms = -1;
  /** The last generation of pending names that was assigned before it was found missing. */
  missing_after = 0;
  /** Wall time when it was found missing, in ms. */
  missing_at_ms = 0;

  constructor(id: number, parent: TreeNode | null, name: string, stat: KeptFileStat) {
    this.id = id;
    this.parent = parent;
    this.name = name;
    this.dev = stat.dev;
    this.ino = stat.ino;
    this.birth = stat.birth;
    this.mode = stat.mode;
    this.uid = stat.uid;
    this.gid = stat.gid;
    this.size = stat.size;
    this.mtime = stat.mtime;
  }

  /** Whether this is a directory. */
  get is_directory(): boolean {
    return isDirectory(this.mode);
  }
}

/** Yields every node below `node`, children before their directory. */
export function* descendants(node: TreeNode): Generator<TreeNode> {
  for (const child of [...(node.children?.values() ?? [])]) {
    yield* descendants(child);
    yield child;
  }
}

/** Yields `node`, if it is a directory, and every directory below it, parents first. */
export function* directories(node: TreeNode): Generator<TreeNode> {
  if (!node.is_directory) return;
  yield node;
  for (const child of node.children?.values() ?? []) yield* directories(child);
}
