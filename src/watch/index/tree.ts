import { type FileStat, type KeptFileStat, sameIdentity } from './file-stat.ts';
import { TreeNode } from './tree-node.ts';

/**
 * The last known tree, indexed by path and by identity. Changes take effect at once and are collected until `commit`,
 * which marks them as stored, or `rollback`, which undoes them.
 */
export class Tree {
  readonly root: TreeNode;
  #by_inode = new Map<number, TreeNode>();
  #last_id: number;
  #undo: (() => void)[] = [];
  #changed = new Set<TreeNode>();
  #stale: number[] = [];
  #size = 1;
  /** Number of nodes by device, other than that of the root. */
  readonly #count_on = new Map<number, number>();

  constructor(root: TreeNode, last_id = root.id) {
    this.root = root;
    this.#last_id = last_id;
    this.#link(root);
  }

  /** Known files and directories, the root included. */
  get size(): number {
    return this.#size;
  }

  /** Known files and directories with this device number; 0 is that of the root. */
  countOn(dev: number): number {
    return dev === 0 ? this.#size : (this.#count_on.get(dev) ?? 0);
  }

  /** The child of `dir` with this name. */
  child(dir: TreeNode, name: string): TreeNode | undefined {
    return dir.children?.get(name);
  }

  /** All nodes with this identity: more than one if the file has hard links. */
  withIdentity(stat: FileStat): TreeNode[] {
    const found: TreeNode[] = [];
    for (let node = this.#by_inode.get(stat.ino); node; node = node.next_of_inode ?? undefined) {
      if (sameIdentity(node, stat)) found.push(node);
    }
    return found;
  }

  /** The absolute path of a node, in internal form (see `name.ts`). */
  path(node: TreeNode): string {
    let path = node.name;
    for (let up = node.parent; up; up = up.parent) path = `${up.name === '/' ? '' : up.name}/${path}`;
    return path;
  }

  /** The absolute path of `name` in `dir`, in internal form, whether or not it is known. */
  childPath(dir: TreeNode, name: string): string {
    const path = this.path(dir);
    return path === '/' ? `/${name}` : `${path}/${name}`;
  }

  /** The node at an absolute path in internal form. */
  at(path: string): TreeNode | undefined {
    const names = path.slice(this.root.name === '/' ? 1 : this.root.name.length + 1).split('/');
    let node: TreeNode | undefined = this.root;
    for (const name of names) node = node && this.child(node, name);
    return node;
  }

  /** Adds a node with a new id. */
  add(dir: TreeNode, name: string, stat: FileStat): TreeNode {
    const node = new TreeNode(++this.#last_id, dir, name, stat);
    this.#attach(node);
    this.#record(node, () => this.#detach(node));
    return node;
  }

  /** Attaches a node that was loaded from the store; this is not a change to commit. */
  restore(node: TreeNode): void {
    this.#attach(node);
  }

  /** Moves a node, with everything below it, to `name` in `dir`. */
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

  /** Replaces what is known of a node, including its identity. */
  update(node: TreeNode, stat: KeptFileStat): void {
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
    set(stat);
    this.#record(node, () => set({ dev, ino, birth, mode, uid, gid, size, mtime }));
  }

  /** Sets whether a later signal counts as a write even if the file looks unchanged; not stored. */
  setUnreported(node: TreeNode, unreported: boolean): void {
    const before = node.unreported;
    node.unreported = unreported;
    this.#undo.push(() => {
      node.unreported = before;
    });
  }

  /** Removes a node, which must have no children. */
  remove(node: TreeNode): void {
    this.#detach(node);
    this.#record(node, () => this.#attach(node));
  }

  /** Number of rows to store or to drop. */
  get unstored(): number {
    return this.#changed.size + this.#stale.length;
  }

  /** The changes since the last commit: nodes to store, and ids of rows to drop. */
  changes(): { put: TreeNode[]; drop: number[] } {
    const put: TreeNode[] = [];
    const drop: number[] = [...this.#stale];
    for (const node of this.#changed) node.known ? put.push(node) : drop.push(node.id);
    return { put, drop };
  }

  /** Marks a node to be stored although nothing in it changed. */
  markChanged(node: TreeNode): void {
    this.#changed.add(node);
  }

  /** Marks a row without a node to be dropped. */
  discard(id: number): void {
    this.#stale.push(id);
  }

  /** Marks all changes as stored. */
  commit(): void {
    this.#undo = [];
    this.#changed.clear();
    this.#stale = [];
  }

  /** Undoes all changes since the last commit. Rows marked with `discard` stay marked. */
  rollback(): void {
    for (const undo of this.#undo.reverse()) undo();
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
    if (node.dev !== 0) this.#count_on.set(node.dev, this.countOn(node.dev) + 1);
    node.next_of_inode = this.#by_inode.get(node.ino) ?? null;
    this.#by_inode.set(node.ino, node);
  }

  #unlink(node: TreeNode): void {
    if (node.dev !== 0) this.#countDown(node.dev);
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

  #countDown(dev: number): void {
    const left = this.countOn(dev) - 1;
    if (left > 0) this.#count_on.set(dev, left);
    else this.#count_on.delete(dev);
  }
}
