import { type FileStat, isDirectory, type KeptFileStat, sameIdentity } from './file-stat.ts';

/** One known file or directory. Paths are not stored: a moved directory changes one node. */
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
  /** By name; null where there are none. */
  children: Map<string, TreeNode> | null = null;
  /** The next node with the same inode number: a hard link, or another file system's file. */
  next_of_inode: TreeNode | null = null;
  /** False once removed from the tree. */
  known = true;
  /** Content that no event told of yet, or that may have changed within one tick of the kernel's clock. */
  untold = false;
  /** Monotonic ms since when it is missing from its place; -1 while it is there. */
  missing_since_ms = -1;
  /** The number of the last signal before it was found missing. */
  missing_after = 0;
  /** Wall time when it was found missing, in ms. */
  missing_at_ms = 0;

  constructor(id: number, parent: TreeNode | null, name: string, facts: KeptFileStat) {
    this.id = id;
    this.parent = parent;
    this.name = name;
    this.dev = facts.dev;
    this.ino = facts.ino;
    this.birth = facts.birth;
    this.mode = facts.mode;
    this.uid = facts.uid;
    this.gid = facts.gid;
    this.size = facts.size;
    this.mtime = facts.mtime;
  }

  get is_directory(): boolean {
    return isDirectory(this.mode);
  }
}

/**
 * The last known tree, by place and by identity. Changes are kept apart until `commit`, which says that they are
 * stored, or `rollback`, which takes them back.
 */
export class Tree {
  readonly root: TreeNode;
  #by_inode = new Map<number, TreeNode>();
  #last_id: number;
  #undo: (() => void)[] = [];
  #changed = new Set<TreeNode>();
  #stale: number[] = [];
  #size = 1;

  constructor(root: TreeNode, last_id = root.id) {
    this.root = root;
    this.#last_id = last_id;
    this.#link(root);
  }

  /** Known files and directories, the root included. */
  get size(): number {
    return this.#size;
  }

  child(dir: TreeNode, name: string): TreeNode | undefined {
    return dir.children?.get(name);
  }

  /** Every node with this identity: more than one for hard links. */
  withIdentity(facts: FileStat): TreeNode[] {
    const found: TreeNode[] = [];
    for (let node = this.#by_inode.get(facts.ino); node; node = node.next_of_inode ?? undefined) {
      if (sameIdentity(node, facts)) found.push(node);
    }
    return found;
  }

  /** The path in internal form, absolute. */
  path(node: TreeNode): string {
    let path = node.name;
    for (let up = node.parent; up; up = up.parent) path = `${up.name === '/' ? '' : up.name}/${path}`;
    return path;
  }

  childPath(dir: TreeNode, name: string): string {
    const path = this.path(dir);
    return path === '/' ? `/${name}` : `${path}/${name}`;
  }

  /** The node at a path in internal form. */
  at(path: string): TreeNode | undefined {
    const names = path.slice(this.root.name === '/' ? 1 : this.root.name.length + 1).split('/');
    let node: TreeNode | undefined = this.root;
    for (const name of names) node = node && this.child(node, name);
    return node;
  }

  add(dir: TreeNode, name: string, facts: FileStat): TreeNode {
    const node = new TreeNode(++this.#last_id, dir, name, facts);
    this.#attach(node);
    this.#record(node, () => this.#detach(node));
    return node;
  }

  /** Puts a node that was stored back; no change to commit. */
  restore(node: TreeNode): void {
    this.#attach(node);
  }

  move(node: TreeNode, dir: TreeNode, name: string): void {
    const { parent, name: old_name } = node;
    const place = (to: TreeNode | null, as: string) => {
      this.#leave(node);
      node.parent = to;
      node.name = as;
      this.#enter(node);
    };
    place(dir, name);
    this.#record(node, () => place(parent, old_name));
  }

  /** Takes over what was seen, a new identity at the same place included. */
  update(node: TreeNode, facts: KeptFileStat): void {
    const { dev, ino, birth, mode, uid, gid, size, mtime } = node;
    const set = (to: KeptFileStat) => {
      this.#unlink(node);
      node.dev = to.dev;
      node.ino = to.ino;
      node.birth = to.birth;
      node.mode = to.mode;
      node.uid = to.uid;
      node.gid = to.gid;
      node.size = to.size;
      node.mtime = to.mtime;
      this.#link(node);
    };
    set(facts);
    this.#record(node, () => set({ dev, ino, birth, mode, uid, gid, size, mtime }));
  }

  /** Notes whether a later signal about an unchanged file is a write all the same; not stored. */
  setUntold(node: TreeNode, untold: boolean): void {
    const before = node.untold;
    node.untold = untold;
    this.#undo.push(() => {
      node.untold = before;
    });
  }

  /** Removes a node that has no children. */
  remove(node: TreeNode): void {
    this.#detach(node);
    this.#record(node, () => this.#attach(node));
  }

  /** Rows that have to be stored or dropped. */
  get pending(): number {
    return this.#changed.size + this.#stale.length;
  }

  /** What has to be stored: nodes that are new or changed, and ids that are gone. */
  changes(): { put: TreeNode[]; drop: number[] } {
    const put: TreeNode[] = [];
    const drop: number[] = [...this.#stale];
    for (const node of this.#changed) node.known ? put.push(node) : drop.push(node.id);
    return { put, drop };
  }

  /** Marks a node to be stored though nothing in it changed. */
  touch(node: TreeNode): void {
    this.#changed.add(node);
  }

  /** Marks a row to be dropped that no node stands for. */
  discard(id: number): void {
    this.#stale.push(id);
  }

  commit(): void {
    this.#undo = [];
    this.#changed.clear();
    this.#stale = [];
  }

  rollback(): void {
    for (const takeBack of this.#undo.reverse()) takeBack();
    this.#undo = [];
    this.#changed.clear();
  }

  #record(node: TreeNode, undo: () => void): void {
    this.#undo.push(undo);
    this.#changed.add(node);
  }

  #attach(node: TreeNode): void {
    this.#enter(node);
    this.#link(node);
    node.known = true;
    this.#size++;
  }

  #detach(node: TreeNode): void {
    this.#leave(node);
    this.#unlink(node);
    node.known = false;
    this.#size--;
  }

  #enter(node: TreeNode): void {
    if (!node.parent) return;
    node.parent.children ??= new Map();
    node.parent.children.set(node.name, node);
  }

  #leave(node: TreeNode): void {
    const siblings = node.parent?.children;
    if (siblings?.get(node.name) === node) siblings.delete(node.name);
    if (node.parent && siblings?.size === 0) node.parent.children = null;
  }

  #link(node: TreeNode): void {
    node.next_of_inode = this.#by_inode.get(node.ino) ?? null;
    this.#by_inode.set(node.ino, node);
  }

  #unlink(node: TreeNode): void {
    const first = this.#by_inode.get(node.ino);
    if (first === node) {
      if (node.next_of_inode) this.#by_inode.set(node.ino, node.next_of_inode);
      else this.#by_inode.delete(node.ino);
    } else {
      let before = first;
      while (before && before.next_of_inode !== node) before = before.next_of_inode ?? undefined;
      if (before) before.next_of_inode = node.next_of_inode;
    }
    node.next_of_inode = null;
  }
}

/** Every node below, children before their directory. */
export function* descendants(node: TreeNode): Generator<TreeNode> {
  for (const child of [...(node.children?.values() ?? [])]) {
    yield* descendants(child);
    yield child;
  }
}

/** The node itself, if it is a directory, and every directory below, each before what is in it. */
export function* directories(node: TreeNode): Generator<TreeNode> {
  if (!node.is_directory) return;
  yield node;
  for (const child of node.children?.values() ?? []) yield* directories(child);
}
