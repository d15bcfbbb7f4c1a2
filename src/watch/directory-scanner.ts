import type { Clock } from '../base/clock.ts';
import type { Disk } from './disk.ts';
import type { Ignored } from './ignore.ts';
import { accessDiffers, contentDiffers, type FileStat, sameIdentity } from './index/file-stat.ts';
import { LISTED_AHEAD_MAX } from './index/limits.ts';
import type { Tree } from './index/tree.ts';
import { descendants, type TreeNode } from './index/tree-node.ts';
import type { Prober } from './prober.ts';
import type { PendingNames } from './signals/pending-names.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface DirectoryScannerOptions {
  tree: Tree;
  pending: PendingNames;
  prober: Prober;
  watch_set: WatchSet;
  ignored: Ignored | null;
  clock: Clock;
  disk: Disk;
}

/**
 * Compares directories with the tree: names that differ are pending, known directories below are watched, and
 * compared too where that was asked. A name that is the same costs one observation and nothing more.
 */
export class DirectoryScanner {
  readonly #options: DirectoryScannerOptions;
  readonly #tree: Tree;
  /** Directories to list, and whether all below them too. */
  readonly #queued = new Map<TreeNode, boolean>();
  /** Watched directories, and mounts in them, whose changes the kernel may not see, with the file system's kind. */
  readonly remote = new Map<TreeNode, string>();
  /** Directories that could not be listed, or not all of whose entries could be looked at. */
  readonly hidden = new Set<TreeNode>();
  /** While the first index is made: what is found is taken as it is. */
  adopting = false;
  /** Time spent so far. */
  busy_ms = 0;

  constructor(options: DirectoryScannerOptions) {
    this.#options = options;
    this.#tree = options.tree;
  }

  /** Directories waiting. */
  get size(): number {
    return this.#queued.size;
  }

  add(dir: TreeNode, recursive: boolean): void {
    this.#queued.set(dir, recursive || (this.#queued.get(dir) ?? false));
  }

  forget(dir: TreeNode): void {
    this.#queued.delete(dir);
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

  /** Lists what is waiting, until enough names are pending. */
  run(): void {
    if (this.#queued.size === 0) return;
    const { clock, prober, pending } = this.#options;
    const start_ms = clock.monotonicMs();
    const isInPlace = prober.places();
    for (const [dir, recursive] of this.#queued) {
      if (pending.unobserved + this.#tree.unstored >= LISTED_AHEAD_MAX) break;
      this.#queued.delete(dir);
      if (!dir.known) continue;
      if (isInPlace(dir)) this.#list(dir, recursive);
      else if (dir.parent) pending.add(dir.parent, dir.name);
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
      if (!seen.has(name)) this.#options.pending.add(dir, name);
    }
  }

  #compare(dir: TreeNode, name: string, recursive: boolean): void {
    const { prober, pending, watch_set } = this.#options;
    const node = this.#tree.child(dir, name);
    if (this.isIgnored(dir, name)) {
      if (node) this.#leaveOut(node);
      return;
    }
    const stat = prober.probe(dir, name);
    if (stat === 'hidden') this.hidden.add(dir);
    if (stat === 'hidden') return;
    if (!node) {
      if (stat !== 'missing' && this.adopting) this.#adopt(dir, name, stat);
      else pending.add(dir, name);
      return;
    }
    const same = stat !== 'missing' && sameIdentity(node, stat);
    const missing = node.missing_since_ms >= 0;
    if (!same || missing || contentDiffers(node, stat) || accessDiffers(node, stat)) pending.add(dir, name);
    if (!same || !node.is_directory) return;
    if (!watch_set.has(node)) watch_set.add(node);
    else if (recursive) this.add(node, true);
  }

  #adopt(dir: TreeNode, name: string, stat: FileStat): void {
    const node = this.#tree.add(dir, name, stat);
    if (node.is_directory) this.#options.watch_set.add(node);
  }

  /** Takes what is ignored from now on out of the tree: it is not removed, so nothing is told. */
  #leaveOut(node: TreeNode): void {
    for (const gone of [...descendants(node), node]) {
      this.#options.watch_set.drop(gone);
      this.#options.pending.forget(gone);
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
