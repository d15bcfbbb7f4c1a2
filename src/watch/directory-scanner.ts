import type { Clock } from '../base/clock.ts';
import type { Disk } from './disk.ts';
import type { Ignored } from './ignore.ts';
import { accessDiffers, contentDiffers, type FileStat, sameIdentity } from './index/file-stat.ts';
import { LISTED_AHEAD_MAX } from './index/limits.ts';
import { descendants, type Tree, type TreeNode } from './index/tree.ts';
import type { Prober } from './prober.ts';
import type { PendingNames } from './signals/pending-names.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface ListerOptions {
  tree: Tree;
  touched: PendingNames;
  looker: Prober;
  coverage: WatchSet;
  ignored: Ignored | null;
  clock: Clock;
  disk: Disk;
}

/**
 * Compares directories with the tree: names that differ are touched, known directories below are watched, and
 * compared too where that was asked. A name that is the same costs one look and nothing more.
 */
export class DirectoryScanner {
  readonly #options: ListerOptions;
  readonly #tree: Tree;
  /** Directories to list, and whether all below them too. */
  readonly #pending = new Map<TreeNode, boolean>();
  /** Watched directories, and mounts in them, whose changes the kernel may not see, with the file system's kind. */
  readonly remote = new Map<TreeNode, string>();
  /** Directories that could not be listed, or not all of whose entries could be looked at. */
  readonly hidden = new Set<TreeNode>();
  /** While the first index is made: what is found is taken as it is. */
  adopting = false;
  /** Time spent so far. */
  busy_ms = 0;

  constructor(options: ListerOptions) {
    this.#options = options;
    this.#tree = options.tree;
  }

  /** Directories waiting. */
  get size(): number {
    return this.#pending.size;
  }

  add(dir: TreeNode, recursive: boolean): void {
    this.#pending.set(dir, recursive || (this.#pending.get(dir) ?? false));
  }

  forget(dir: TreeNode): void {
    this.#pending.delete(dir);
    this.remote.delete(dir);
    this.hidden.delete(dir);
  }

  /** Whether a name is left out; the path counts from the watched directory. */
  isIgnored(dir: TreeNode, name: string): boolean {
    const { ignored } = this.#options;
    if (!ignored) return false;
    const root = this.#tree.root.name;
    return ignored(this.#tree.childPath(dir, name).slice(root === '/' ? 1 : root.length + 1));
  }

  /** Lists what is waiting, until enough names are touched. */
  run(): void {
    if (this.#pending.size === 0) return;
    const { clock, looker, touched } = this.#options;
    const start_ms = clock.monotonicMs();
    const isInPlace = looker.places();
    for (const [dir, recursive] of this.#pending) {
      if (touched.unlooked + this.#tree.pending >= LISTED_AHEAD_MAX) break;
      this.#pending.delete(dir);
      if (!dir.known) continue;
      if (isInPlace(dir)) this.#list(dir, recursive);
      else if (dir.parent) touched.touch(dir.parent, dir.name);
    }
    this.busy_ms += clock.monotonicMs() - start_ms;
  }

  #list(dir: TreeNode, recursive: boolean): void {
    this.#checkFileSystem(dir);
    const names = this.#options.disk.list(this.#tree.path(dir));
    this.hidden.delete(dir);
    if (names === null) this.hidden.add(dir);
    if (names === null) return;
    const seen = new Set(names);
    for (const name of names) this.#compare(dir, name, recursive);
    for (const name of dir.children?.keys() ?? []) {
      if (!seen.has(name)) this.#options.touched.touch(dir, name);
    }
  }

  #compare(dir: TreeNode, name: string, recursive: boolean): void {
    const { looker, touched, coverage } = this.#options;
    const node = this.#tree.child(dir, name);
    if (this.isIgnored(dir, name)) {
      if (node) this.#leaveOut(node);
      return;
    }
    const facts = looker.lookAt(dir, name);
    if (facts === 'hidden') this.hidden.add(dir);
    if (facts === 'hidden') return;
    if (!node) {
      if (facts !== 'missing' && this.adopting) this.#adopt(dir, name, facts);
      else touched.touch(dir, name);
      return;
    }
    const same = facts !== 'missing' && sameIdentity(node, facts);
    const missing = node.missing_since_ms >= 0;
    if (!same || missing || contentDiffers(node, facts) || accessDiffers(node, facts))
      touched.touch(dir, name);
    if (!same || !node.is_directory) return;
    if (!coverage.has(node)) coverage.want(node);
    else if (recursive) this.add(node, true);
  }

  #adopt(dir: TreeNode, name: string, facts: FileStat): void {
    const node = this.#tree.add(dir, name, facts);
    if (node.is_directory) this.#options.coverage.want(node);
  }

  /** Takes what is ignored from now on out of the tree: it is not removed, so nothing is told. */
  #leaveOut(node: TreeNode): void {
    for (const gone of [...descendants(node), node]) {
      this.#options.coverage.drop(gone);
      this.#options.touched.forget(gone);
      this.forget(gone);
      this.#tree.remove(gone);
    }
  }

  #checkFileSystem(dir: TreeNode): void {
    if (dir.parent && dir.dev === dir.parent.dev) return;
    const on = this.#options.disk.fileSystem(this.#tree.path(dir));
    if (on?.kind === 'remote') this.remote.set(dir, on.name);
    else this.remote.delete(dir);
  }
}
