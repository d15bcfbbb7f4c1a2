import type { FileModified, FileOperation } from '../../contract/events.ts';
import { accessDiffers, contentDiffers, isFile, sameIdentity } from '../index/file-stat.ts';
import type { Tree } from '../index/tree.ts';
import type { TreeNode } from '../index/tree-node.ts';
import { fileEvent } from './events.ts';

/** A node and its absolute path, in internal form. */
interface Located {
  path: string;
  node: TreeNode;
  /** Whether something else has been, or is, at the path. */
  is_replaced: boolean;
}

/**
 * The changes of a directory from one known state to another, such that each is true when they are applied in order. The
 * two trees may have different roots, above the directory or at it. A move is told as such where the directories that it
 * leads from and to have stayed, or have moved themselves. No I/O and no clock. Source: contract section 6.
 */
export function differences(from: Tree, to: Tree, directory: string): FileModified[] {
  return new Comparison(from, to, directory).changes();
}

class Comparison {
  readonly #changes: FileModified[] = [];
  /** Told last: by then everything is in its place. */
  readonly #updates: FileModified[] = [];
  #gone: Located[] = [];
  #arrived: Located[] = [];

  constructor(from: Tree, to: Tree, directory: string) {
    const [before, after] = [nodeAt(from, directory), nodeAt(to, directory)];
    if (before && after) this.#compareInside(before, after, directory);
    else if (before) this.#leave(before, directory);
    else if (after) this.#arrive(after, directory);
  }

  changes(): FileModified[] {
    while (this.#tellMoves());
    for (const { path, node } of this.#gone) this.#remove(path, node);
    for (const { path, node } of this.#arrived) this.#create(path, node);
    return [...this.#changes, ...this.#updates];
  }

  #compareInside(before: TreeNode, after: TreeNode, path: string): void {
    for (const [name, node] of before.children ?? []) {
      const now = after.children?.get(name);
      if (!now || now.is_directory !== node.is_directory)
        this.#gone.push({ path: pathOf(path, name), node, is_replaced: now !== undefined });
      else this.#compare(node, now, pathOf(path, name));
    }
    for (const [name, node] of after.children ?? []) {
      const known = before.children?.get(name);
      if (!known || known.is_directory !== node.is_directory)
        this.#arrived.push({ path: pathOf(path, name), node, is_replaced: known !== undefined });
    }
  }

  #compare(before: TreeNode, after: TreeNode, path: string): void {
    const is_other = !after.is_directory && !isFile(after.mode) && !isSame(before, after);
    if (is_other || contentDiffers(before, after)) this.#tell('write', path, after, this.#updates);
    if (accessDiffers(before, after)) this.#tell('chmod', path, after, this.#updates);
    if (after.is_directory) this.#compareInside(before, after, path);
  }

  /** What is known once before and once now has moved. Returns whether there was any: what was in it may have moved too. */
  #tellMoves(): boolean {
    const arrived = once(this.#arrived);
    const moves = new Map<Located, Located>();
    for (const old of once(this.#gone).values()) {
      const now = old && arrived.get(old.node.ino);
      if (now && !old.is_replaced && !now.is_replaced && isSame(old.node, now.node)) moves.set(old, now);
    }
    const moved = new Set(moves.values());
    this.#gone = this.#gone.filter((each) => !moves.has(each));
    this.#arrived = this.#arrived.filter((each) => !moved.has(each));
    for (const [old, { path, node }] of moves) {
      this.#changes.push(fileEvent('rename', path, node.is_directory, 0, old.path).payload);
      this.#compare(old.node, node, path);
    }
    return moves.size > 0;
  }

  /** The root of a tree has no state of its own. */
  #leave(node: TreeNode, path: string): void {
    if (node.parent) this.#gone.push({ path, node, is_replaced: false });
    else for (const [name, child] of node.children ?? []) this.#leave(child, pathOf(path, name));
  }

  #arrive(node: TreeNode, path: string): void {
    if (node.parent) this.#arrived.push({ path, node, is_replaced: false });
    else for (const [name, child] of node.children ?? []) this.#arrive(child, pathOf(path, name));
  }

  #remove(path: string, node: TreeNode): void {
    for (const [name, child] of node.children ?? []) this.#remove(pathOf(path, name), child);
    this.#tell('remove', path, node);
  }

  #create(path: string, node: TreeNode): void {
    this.#tell('create', path, node);
    for (const [name, child] of node.children ?? []) this.#create(pathOf(path, name), child);
  }

  #tell(operation: FileOperation, path: string, { is_directory }: TreeNode, changes = this.#changes): void {
    changes.push(fileEvent(operation, path, is_directory, 0).payload);
  }
}

function nodeAt(tree: Tree, path: string): TreeNode | undefined {
  return tree.root.name === path ? tree.root : tree.at(path);
}

/** By their inodes; null for what has several names. */
function once(found: readonly Located[]): Map<number, Located | null> {
  const by_inode = new Map<number, Located | null>();
  for (const each of found) by_inode.set(each.node.ino, by_inode.has(each.node.ino) ? null : each);
  return by_inode;
}

/** Each tree tells devices in its own way. */
function isSame(one: TreeNode, other: TreeNode): boolean {
  return sameIdentity({ ...one, dev: 0 }, { ...other, dev: 0 });
}

function pathOf(directory: string, name: string): string {
  return directory === '/' ? `/${name}` : `${directory}/${name}`;
}
