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
  /** Called when a directory is watched, or cannot be: a listing from now on misses nothing before it. */
  onReady: (dir: TreeNode) => void;
  /** Called when there is nothing at a directory's path. */
  onGone: (dir: TreeNode) => void;
}

const nothing = () => {};

/** Which directories are watched, and which cannot be. */
export class WatchSet {
  readonly #options: WatchSetOptions;
  readonly #by_dir = new Map<TreeNode, WatchEntry>();
  readonly #count = { watched: 0, limit: 0, unreadable: 0 };
  #stopped = false;
  /** Set at the first refusal; no further watch is tried until `retry`. */
  #at_limit = false;

  constructor(options: WatchSetOptions) {
    this.#options = options;
  }

  get watched(): number {
    return this.#count.watched;
  }

  /** Directories that the kernel grants no watch. */
  get refused(): number {
    return this.#count.limit;
  }

  /** The path of one directory without a watch. */
  example(): string {
    for (const { state, path } of this.#by_dir.values()) if (state === 'limit') return JSON.stringify(path);
    return '""';
  }

  has(dir: TreeNode): boolean {
    return this.#by_dir.has(dir);
  }

  isUnreadable(dir: TreeNode): boolean {
    return this.#by_dir.get(dir)?.state === 'unreadable';
  }

  /** Has a directory watched; `onReady` or `onGone` is called. */
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

  /** Stops watching a directory, so that its path can be watched for another. */
  drop(dir: TreeNode): void {
    const watch_set = this.#by_dir.get(dir);
    if (!watch_set) return;
    this.#by_dir.delete(dir);
    this.#count[watch_set.state]--;
    watch_set.close();
  }

  /** Sets the watch of a directory anew. */
  renew(dir: TreeNode): void {
    this.drop(dir);
    this.add(dir);
  }

  /** Tries again to watch what the kernel granted no watch; each is reported ready again. */
  retry(): void {
    this.#at_limit = false;
    for (const [dir, { state }] of [...this.#by_dir]) if (state === 'limit') this.renew(dir);
  }

  /** Closes everything. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const dir of [...this.#by_dir.keys()]) this.drop(dir);
    await this.#options.watches.close();
  }

  #watch(dir: TreeNode, path: string): ReturnType<DirectoryWatches['watch']> {
    return this.#options.watches.watch(path, (...signal) => this.#options.onSignal(dir, ...signal));
  }
}
