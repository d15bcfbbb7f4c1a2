import type { Clock } from '../base/clock.ts';
import { isTemporaryName } from '../contract/temporary-file.ts';
import type { Disk } from './disk.ts';
import type { Ignored } from './ignore.ts';
import { accessDiffers, contentDiffers, type FileStat, sameIdentity } from './index/file-stat.ts';
import { LISTED_AHEAD_MAX } from './index/limits.ts';
import type { Tree } from './index/tree.ts';
import { descendants, type TreeNode } from './index/tree-node.ts';
import type { Prober } from './prober.ts';
import type { RemoteMounts } from './remote-mounts.ts';
import type { PendingNames } from './signals/pending-names.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface DirectoryScannerOptions {
  tree: Tree;
  pending: PendingNames;
  prober: Prober;
  watch_set: WatchSet;
  mounts: RemoteMounts;
  ignored: Ignored | null;
  clock: Clock;
  disk: Disk;
}

/**
 * Compares directories with the tree. Names that differ become pending; known subdirectories are watched, and scanned
 * too if that was requested. A name that did not change costs one probe and nothing else.
 */
export class DirectoryScanner {
  readonly #options: DirectoryScannerOptions;
  readonly #tree: Tree;
  /** Directories to scan, and whether to scan all directories below them too. */
  readonly #queued = new Map<TreeNode, boolean>();
  /** Directories that could not be listed, or that have entries that could not be probed. */
  readonly hidden = new Set<TreeNode>();
  /** Set while the first index is built: what is found is added to the tree without an event. */
  adopting = false;
  /** Time spent on scans so far, in ms. */
  busy_ms = 0;

  constructor(options: DirectoryScannerOptions) {
    this.#options = options;
    this.#tree = options.tree;
  }

  /** Number of directories to scan. */
  get size(): number {
    return this.#queued.size;
  }

  /** Queues a directory; with `recursive` all known directories below it too. */
  add(dir: TreeNode, recursive: boolean): void {
    this.#queued.set(dir, recursive || (this.#queued.get(dir) ?? false));
  }

  /** Drops everything about a directory that is gone. */
  forget(dir: TreeNode): void {
    this.#queued.delete(dir);
    this.#options.mounts.forget(dir);
    this.hidden.delete(dir);
  }

  /** Whether a name in a directory is ignored; one of an upload under way always is. */
  isIgnored(dir: TreeNode, name: string): boolean {
    const { ignored } = this.#options;
    if (isTemporaryName(name)) return true;
    if (!ignored) return false;
    const root = this.#tree.root.name;
    return ignored(this.#tree.childPath(dir, name).slice(root === '/' ? 1 : root.length + 1));
  }

  /** Scans queued directories until `LISTED_AHEAD_MAX` names and rows are pending. */
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
    const { mounts, disk } = this.#options;
    mounts.check(dir);
    const names = disk.list(this.#tree.path(dir), mounts.listMax(dir.dev));
    this.hidden.delete(dir);
    if (names === null) this.hidden.add(dir);
    if (names === null) return;
    const seen = new Set(names);
    for (const name of names) {
      if (mounts.isAside(dir.dev)) return;
      this.#compare(dir, name, recursive);
    }
    for (const name of dir.children?.keys() ?? []) {
      if (!seen.has(name)) this.#differs(dir, name, recursive);
    }
  }

  /** In a directory that is listed for the first time every name is new: that says nothing about its file system. */
  #differs(dir: TreeNode, name: string, is_listed_again: boolean): void {
    if (this.#options.mounts.takes(dir.dev, is_listed_again)) this.#options.pending.add(dir, name);
  }

  #compare(dir: TreeNode, name: string, recursive: boolean): void {
    const { prober, watch_set, mounts } = this.#options;
    const node = this.#tree.child(dir, name);
    if (this.isIgnored(dir, name)) {
      if (node) this.#dropIgnored(node);
      return;
    }
    const stat = prober.probe(dir, name);
    if (stat === 'hidden') this.hidden.add(dir);
    if (stat === 'hidden') return;
    if (!node) {
      if (stat === 'missing' || !this.adopting) this.#differs(dir, name, recursive);
      else if (mounts.takes(dir.dev, false)) this.#adopt(dir, name, stat);
      return;
    }
    const same = stat !== 'missing' && sameIdentity(node, stat);
    const missing = node.missing_since_ms >= 0;
    if (!same || missing || contentDiffers(node, stat) || accessDiffers(node, stat)) {
      this.#differs(dir, name, recursive);
    }
    if (!same || !node.is_directory) return;
    if (!watch_set.has(node)) watch_set.add(node);
    else if (recursive) this.add(node, true);
  }

  #adopt(dir: TreeNode, name: string, stat: FileStat): void {
    const node = this.#tree.add(dir, name, stat);
    if (node.is_directory) this.#options.watch_set.add(node);
  }

  /** Drops a newly ignored node from the tree. It was not removed from the disk, so there is no event. */
  #dropIgnored(node: TreeNode): void {
    for (const gone of [...descendants(node), node]) {
      this.#options.watch_set.drop(gone);
      this.#options.pending.forget(gone);
      this.forget(gone);
      this.#tree.remove(gone);
    }
  }
}
