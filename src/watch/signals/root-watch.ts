import type { Clock } from '../../base/clock.ts';
import type { Vanished } from '../classify/vanished.ts';
import type { Disk } from '../disk.ts';
import { isDirectory } from '../index/file-stat.ts';
import { ABSENT_POLL_MS, RESCAN_MIN_MS } from '../index/limits.ts';
import type { Tree } from '../index/tree.ts';
import type { Prober, RootState } from '../prober.ts';
import type { PendingNames } from './pending-names.ts';
import type { WatchSet } from './watch-set.ts';

const NOTHING = { dev: 0, ino: 0, birth: 0, mode: 0, uid: 0, gid: 0, size: 0, mtime: 0 };

interface RootWatchOptions {
  tree: Tree;
  prober: Prober;
  watch_set: WatchSet;
  vanished: Vanished;
  pending: PendingNames;
  clock: Clock;
  disk: Disk;
  log: { info: (fields: object, message: string) => void };
  /** Called when another directory is in the place of the watched one. */
  onReplaced: () => void;
}

/**
 * Follows the watched directory itself, which may be created later, removed or replaced. It causes no events of its own.
 *
 * | State | Meaning | Left when a check finds |
 * |---|---|---|
 * | `missing` | there is no directory that is accepted; checked every `ABSENT_POLL_MS` | one: `replaced`, then `there` |
 * | `hidden` | the file system does not let us see; checked every `ABSENT_POLL_MS` | a directory, or none |
 * | `there` | it is watched; a symbolic link is checked every `RESCAN_MIN_MS` | none: `missing`; another: `replaced` |
 * | `replaced` | another directory was found and is taken over | the same again: `there` |
 */
export class RootWatch {
  readonly #options: RootWatchOptions;
  #next_ms: number | null = null;
  #state: RootState = 'missing';

  constructor(options: RootWatchOptions) {
    this.#options = options;
  }

  /** Whether there is currently no directory to watch. */
  get waiting(): boolean {
    return this.#state === 'missing' || this.#state === 'hidden';
  }

  /** When the next check is due, in monotonic ms; null while the directory's own watch is sufficient. */
  nextDueMs(): number | null {
    return this.#next_ms;
  }

  /** Checks the watched directory; false if it currently cannot be seen. */
  check(): boolean {
    const { tree, prober, watch_set } = this.#options;
    const { state, stat } = prober.probeRoot();
    this.#state = state;
    if (state === 'missing') this.#gone();
    else if (stat && state === 'replaced') this.#appeared(stat);
    if (!this.waiting && !watch_set.has(tree.root)) watch_set.add(tree.root);
    this.#plan();
    return state !== 'hidden';
  }

  #gone(): void {
    if (this.#options.tree.root.mode === 0) return;
    const { tree, watch_set, vanished, pending, clock, log } = this.#options;
    log.info({ watch_dir: tree.root.name }, 'watch_dir does not exist: waiting for it');
    tree.update(tree.root, NOTHING);
    watch_set.drop(tree.root);
    pending.forget(tree.root); // everything is scanned when it reappears
    for (const child of tree.root.children?.values() ?? []) {
      if (child.missing_since_ms < 0) child.missing_at_ms = clock.wallMs();
      vanished.add(child, clock.monotonicMs(), pending.last_generation);
    }
  }

  #appeared(stat: Parameters<Tree['update']>[1]): void {
    const { tree, watch_set, log } = this.#options;
    log.info({ watch_dir: tree.root.name }, 'watch_dir exists and is watched');
    tree.update(tree.root, stat);
    // The present watch belongs to the former directory.
    if (watch_set.has(tree.root)) this.#options.onReplaced();
    watch_set.drop(tree.root);
  }

  #plan(): void {
    const now_ms = this.#options.clock.monotonicMs();
    if (this.waiting) this.#next_ms = now_ms + ABSENT_POLL_MS;
    else this.#next_ms = this.#isLink() ? now_ms + RESCAN_MIN_MS : null;
  }

  /** The kernel does not signal a link that changes its target. */
  #isLink(): boolean {
    const { disk, tree } = this.#options;
    const itself = disk.probe(tree.root.name);
    return typeof itself !== 'string' && !isDirectory(itself.mode);
  }
}
