import { type DirectoryWatch, type OnSignal, type WatchFailure, watchDirectory } from './directory-watch.ts';
import { OPENING_MAX } from './limits.ts';
import type { TreeNode } from './tree.ts';

/** Sets one watch; chokidar's, or a test's. */
export type WatchDirectory = (path: string, onSignal: OnSignal) => Promise<DirectoryWatch | WatchFailure>;

interface Coverage {
  state: 'queued' | 'opening' | 'watched' | Exclude<WatchFailure, 'gone'>;
  path: string;
  watch: DirectoryWatch | null;
}

interface CoverageOptions {
  pathOf: (dir: TreeNode) => string;
  onSignal: (dir: TreeNode, ...signal: Parameters<OnSignal>) => void;
  /** Called when a directory is watched, or cannot be: from now on a listing misses nothing before it. */
  onReady: (dir: TreeNode) => void;
  /** Called when there is nothing at a directory's path. */
  onGone: (dir: TreeNode) => void;
  watch?: WatchDirectory;
}

/** Which directories are watched, a few being opened at a time, and which cannot be. */
export class DirectoryCoverage {
  readonly #options: CoverageOptions;
  readonly #watch: WatchDirectory;
  readonly #by_dir = new Map<TreeNode, Coverage>();
  #queue: TreeNode[] = [];
  #opening = 0;
  #closing = new Set<Promise<void>>();
  readonly #count = { watched: 0, limit: 0, unreadable: 0 };
  #stopped = false;
  /** Set at the first refusal; no further watch is tried until `retry`. */
  #at_limit = false;

  constructor(options: CoverageOptions) {
    this.#options = options;
    this.#watch = options.watch ?? watchDirectory;
  }

  get watched(): number {
    return this.#count.watched;
  }

  get unreadable(): number {
    return this.#count.unreadable;
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

  isUnreadable(dir: TreeNode): boolean {
    return this.#by_dir.get(dir)?.state === 'unreadable';
  }

  /** Whether every directory asked for is either watched or known not to be. */
  get settled(): boolean {
    return this.#opening === 0 && this.#queue.length === 0;
  }

  has(dir: TreeNode): boolean {
    return this.#by_dir.has(dir);
  }

  /** Has a directory watched; `onReady` follows. */
  want(dir: TreeNode): void {
    if (this.#stopped || this.#by_dir.has(dir)) return;
    this.#by_dir.set(dir, { state: 'queued', path: '', watch: null });
    this.#queue.push(dir);
    this.#openNext();
  }

  /** Stops watching a directory. The watch is closed when this returns: its path can be watched for another. */
  drop(dir: TreeNode): void {
    const coverage = this.#by_dir.get(dir);
    if (!coverage) return;
    this.#by_dir.delete(dir);
    this.#counted(coverage.state, -1);
    if (coverage.watch) this.#close(coverage.watch);
  }

  /** Tries again to watch what the kernel granted no watch; each is reported ready again. */
  retry(): void {
    this.#at_limit = false;
    for (const [dir, { state }] of [...this.#by_dir]) if (state === 'limit') this.again(dir);
  }

  /** Sets the watch of a directory anew. */
  again(dir: TreeNode): void {
    this.drop(dir);
    this.want(dir);
  }

  /** Closes everything. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#queue = [];
    for (const dir of [...this.#by_dir.keys()]) this.drop(dir);
    await Promise.allSettled([...this.#closing]);
  }

  #openNext(): void {
    while (this.#opening < OPENING_MAX) {
      const dir = this.#queue.shift();
      if (!dir) return;
      const coverage = this.#by_dir.get(dir);
      if (coverage?.state !== 'queued') continue;
      this.#opening++;
      coverage.state = 'opening';
      coverage.path = this.#options.pathOf(dir);
      const opening = this.#at_limit
        ? Promise.resolve<WatchFailure>('limit')
        : this.#watch(coverage.path, (...signal) => this.#options.onSignal(dir, ...signal));
      void opening.then((result) => this.#opened(dir, coverage, result));
    }
  }

  #opened(dir: TreeNode, coverage: Coverage, result: DirectoryWatch | WatchFailure): void {
    this.#opening--;
    const watch = typeof result === 'string' ? null : result;
    const wanted = this.#by_dir.get(dir) === coverage;
    const moved = wanted && this.#options.pathOf(dir) !== coverage.path;
    if (watch && (!wanted || moved || this.#stopped)) this.#close(watch);
    if (moved || (wanted && result === 'gone')) this.#by_dir.delete(dir);
    if (moved) this.want(dir);
    else if (wanted && result === 'gone') this.#options.onGone(dir);
    else if (wanted) this.#settle(dir, coverage, watch, typeof result === 'string' ? result : 'watched');
    this.#openNext();
  }

  #settle(
    dir: TreeNode,
    coverage: Coverage,
    watch: DirectoryWatch | null,
    state: Coverage['state'] | 'gone',
  ): void {
    if (state === 'gone') return;
    if (state === 'limit') this.#at_limit = true;
    coverage.watch = watch;
    coverage.state = state;
    this.#counted(state, 1);
    this.#options.onReady(dir);
  }

  #counted(state: Coverage['state'], by: number): void {
    if (state === 'watched' || state === 'limit' || state === 'unreadable') this.#count[state] += by;
  }

  #close(watch: DirectoryWatch): void {
    const closing = watch.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
