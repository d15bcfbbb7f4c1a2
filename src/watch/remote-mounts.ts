import type { Clock } from '../base/clock.ts';
import type { Disk } from './disk.ts';
import { REMOTE_ASIDE_MS, REMOTE_FOUND_MAX, REMOTE_NAMES_MAX } from './index/limits.ts';
import type { Tree } from './index/tree.ts';
import type { TreeNode } from './index/tree-node.ts';

/** How much a remote file system may give the watch to do. */
export interface RemoteLimits {
  /** Names that are known of it, and names in one of its directories. */
  names: number;
  /** Differences in `REMOTE_ASIDE_MS` that no signal announced. */
  found: number;
}

interface RemoteMountsOptions {
  tree: Tree;
  clock: Clock;
  disk: Disk;
  log: { warn: (fields: object, message: string) => void };
  remote_limits?: RemoteLimits;
}

interface Account {
  found: number;
  since_ms: number;
  /** Set aside until then, in monotonic ms; 0 if it is not. */
  aside_until_ms: number;
}

const ACCOUNTS_MAX = 64;

/**
 * File systems whose changes the kernel may not see, because somebody else makes them: a server or, with FUSE, any
 * program. That one may be hostile: give other names at each look, endless directories, or directories without end
 * below each other. So each that was mounted after the start, or below the watched directory, has limits; above them
 * it is set aside for `REMOTE_ASIDE_MS`, neither looked at nor reported. What `watch_dir` was on at the start is the
 * operator's choice and has none. Source: contract section 6.
 */
export class RemoteMounts {
  readonly #options: RemoteMountsOptions;
  readonly #limits: RemoteLimits;
  /** By device number as the tree has it: the kernel gives each mount its own, whatever the file system says. */
  readonly #accounts = new Map<number, Account>();
  /** The topmost known directories on remote file systems, with the names of those. */
  readonly roots = new Map<TreeNode, string>();
  #root_dev: number | null = null;
  #first_root_dev: number | null = null;

  constructor(options: RemoteMountsOptions) {
    this.#options = options;
    this.#limits = options.remote_limits ?? { names: REMOTE_NAMES_MAX, found: REMOTE_FOUND_MAX };
  }

  /** Notes the device number of the watched directory itself. */
  noteRoot(dev: number): void {
    this.#first_root_dev ??= dev;
    if (dev !== this.#root_dev) this.#accounts.delete(0);
    this.#root_dev = dev;
  }

  /** Finds out on which file system a directory is that is about to be listed. */
  check(dir: TreeNode): void {
    if (dir.parent && dir.dev === dir.parent.dev) return;
    const { disk, tree, clock } = this.#options;
    const on = disk.fileSystem(tree.path(dir));
    this.roots.delete(dir);
    if (on?.kind !== 'remote') return;
    this.roots.set(dir, on.name);
    const is_chosen = dir.dev === 0 && this.#root_dev === this.#first_root_dev;
    if (is_chosen || this.#accounts.has(dir.dev)) return;
    this.#accounts.set(dir.dev, { found: 0, since_ms: clock.monotonicMs(), aside_until_ms: 0 });
    const [oldest] = this.#accounts.keys();
    if (this.#accounts.size > ACCOUNTS_MAX && oldest !== undefined) this.#accounts.delete(oldest);
  }

  /** Drops a directory that is gone. Its account stays: the next look may find it again. */
  forget(dir: TreeNode): void {
    this.roots.delete(dir);
  }

  /** The most names that a directory on this device may have; null if there is no limit. */
  listMax(dev: number): number | null {
    return this.#accounts.has(dev) ? this.#limits.names : null;
  }

  /**
   * Whether a name on this device may be taken up; sets its file system aside when it is above its limits. `found`: the
   * name was found to differ, without a signal.
   */
  takes(dev: number, found: boolean): boolean {
    const account = this.#accounts.get(dev);
    if (!account) return true;
    if (this.isAside(dev)) return false;
    const { clock, tree, log } = this.#options;
    const now_ms = clock.monotonicMs();
    if (now_ms - account.since_ms >= REMOTE_ASIDE_MS) Object.assign(account, { found: 0, since_ms: now_ms });
    if (found) account.found++;
    if (account.found <= this.#limits.found && tree.countOn(dev) < this.#limits.names) return true;
    account.aside_until_ms = now_ms + REMOTE_ASIDE_MS;
    log.warn(
      this.#named(dev)[0] ?? {},
      'a remote file system changes too much or has too many names: not watched for 10 minutes',
    );
    return false;
  }

  /** Whether the file system with this device number is currently set aside. */
  isAside(dev: number): boolean {
    const account = this.#accounts.get(dev);
    return account !== undefined && this.#options.clock.monotonicMs() < account.aside_until_ms;
  }

  /** The file systems that are currently set aside, each as its name and path. */
  aside(): string[] {
    const aside = [...this.#accounts.keys()].filter((dev) => this.isAside(dev));
    return aside
      .flatMap((dev) => this.#named(dev))
      .map(({ path, file_system }) => `${file_system} at ${JSON.stringify(path)}`);
  }

  /** Where a file system is mounted; nowhere once it was found unmounted. */
  #named(dev: number): { path: string; file_system: string }[] {
    const roots = [...this.roots].filter(([dir]) => dir.dev === dev);
    return roots.map(([dir, file_system]) => ({ path: this.#options.tree.path(dir), file_system }));
  }
}
