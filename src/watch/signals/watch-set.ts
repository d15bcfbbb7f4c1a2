import type { TreeNode } from '../index/tree-node.ts';
import type { DirectoryWatches, OnSignal } from './directory-watch.ts';

interface WatchEntry {
  state: 'watched' | 'limit' | 'unreadable';
  path: string;
  close: () => void;
}

interface WatchSetOptions {
  watches: DirectoryWatches;
  pathOf: (dir: TreeNode) => string;
  onSignal: (dir: TreeNode, ...signal: Parameters<OnSignal>) => void;
  /** Called when a directory is watched, or cannot be: a scan from now on misses no earlier change. */
  onReady: (dir: TreeNode) => void;
  /** Called when a directory does not exist at its path. */
  onGone: (dir: TreeNode) => void;
}

const nothing = () => {};

/**
 * The directories that are watched, and those that cannot be.
 *
 * | State | Meaning | Left when |
 * |---|---|---|
 * | `watched` | the kernel signals its changes | `drop` |
 * | `limit` | the kernel granted no watch; rescanned at intervals | `retry`, `drop` |
 * | `unreadable` | no permission to watch it | `renew`, `drop` |
 */
export class WatchSet {
  readonly #options: WatchSetOptions;
  readonly #by_dir = new Map<TreeNode, WatchEntry>();
  readonly #count = { watched: 0, limit: 0, unreadable: 0 };
  #stopped = false;
  /** Set at the first refusal: no further watch is attempted until `retry`. */
  #at_limit = false;

  constructor(options: WatchSetOptions) {
    this.#options = options;
  }

  /** Number of watched directories. */
  get watched(): number {
    return this.#count.watched;
  }

  /** Number of directories for which the kernel granted no watch. */
  get refused(): number {
    return this.#count.limit;
  }

  /** The path of one directory for which the kernel granted no watch, as a JSON string. */
  example(): string {
    for (const { state, path } of this.#by_dir.values()) if (state === 'limit') return JSON.stringify(path);
    return '""';
  }

  /** Whether a directory is in the set, watched or not. */
  has(dir: TreeNode): boolean {
    return this.#by_dir.has(dir);
  }

  /** Whether a directory could not be watched for lack of permission. */
  isUnreadable(dir: TreeNode): boolean {
    return this.#by_dir.get(dir)?.state === 'unreadable';
  }

  /** Adds a directory and tries to watch it; then calls `onReady` or `onGone`. */
  add(dir: TreeNode): void {
    if (this.#stopped || this.#by_dir.has(dir)) return;
    const path = this.#options.pathOf(dir);
    const result = this.#at_limit ? 'limit' : this.#watch(dir, path);
    if (result === 'gone') {
      this.#options.onGone(dir);
      return;
    }
    if (result === 'limit') this.#at_limit = true;
    const state = typeof result === 'string' ? result : 'watched';
    this.#by_dir.set(dir, { state, path, close: typeof result === 'string' ? nothing : result });
    this.#count[state]++;
    this.#options.onReady(dir);
  }

  /** Removes a directory and closes its watch, so that another directory can be watched at its path. */
  drop(dir: TreeNode): void {
    const watch_set = this.#by_dir.get(dir);
    if (!watch_set) return;
    this.#by_dir.delete(dir);
    this.#count[watch_set.state]--;
    watch_set.close();
  }

  /** Replaces the watch of a directory by a new one; at the limit by the one that it gives back. */
  renew(dir: TreeNode): void {
    if (this.#by_dir.get(dir)?.state === 'watched') this.#at_limit = false;
    this.drop(dir);
    this.add(dir);
  }

  /** Tries again to watch the directories in state `limit`; calls `onReady` for each. */
  retry(): void {
    this.#at_limit = false;
    for (const [dir, { state }] of [...this.#by_dir]) if (state === 'limit') this.renew(dir);
  }

  /** Closes all watches. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const dir of [...this.#by_dir.keys()]) this.drop(dir);
    await this.#options.watches.close();
  }

  #watch(dir: TreeNode, path: string): ReturnType<DirectoryWatches['watch']> {
    return this.#options.watches.watch(path, (...signal) => this.#options.onSignal(dir, ...signal));
  }
}
