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
  onReplaced: () => void;
}

/** Follows the watched directory itself: made later, removed, replaced. It gives no events of its own. */
export class RootWatch {
  readonly #options: RootWatchOptions;
  #next_ms: number | null = null;
  #state: RootState = 'missing';

  constructor(options: RootWatchOptions) {
    this.#options = options;
  }

  /** Whether there is no directory to watch at present. */
  get waiting(): boolean {
    return this.#state === 'missing' || this.#state === 'hidden';
  }

  /** When it has to be looked for again, in monotonic ms; null while its own watch tells. */
  nextDueMs(): number | null {
    return this.#next_ms;
  }

  /** Looks at it; false where that is not possible at present. */
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
    log.info({ watch_dir: tree.root.name }, 'watch_dir is gone; waiting for it');
    tree.update(tree.root, NOTHING);
    watch_set.drop(tree.root);
    pending.forget(tree.root); // all is listed when it is there again
    for (const child of tree.root.children?.values() ?? []) {
      if (child.missing_since_ms < 0) child.missing_at_ms = clock.wallMs();
      vanished.add(child, clock.monotonicMs(), pending.last_generation);
    }
  }

  #appeared(stat: Parameters<Tree['update']>[1]): void {
    const { tree, watch_set, log } = this.#options;
    log.info({ watch_dir: tree.root.name }, 'watch_dir is there');
    tree.update(tree.root, stat);
    // Its watch is the former directory's.
    if (watch_set.has(tree.root)) this.#options.onReplaced();
    watch_set.drop(tree.root);
  }

  #plan(): void {
    const now_ms = this.#options.clock.monotonicMs();
    if (this.waiting) this.#next_ms = now_ms + ABSENT_POLL_MS;
    else this.#next_ms = this.#isLink() ? now_ms + RESCAN_MIN_MS : null;
  }

  /** A link that leads elsewhere is not signalled. */
  #isLink(): boolean {
    const { disk, tree } = this.#options;
    const itself = disk.probe(tree.root.name);
    return typeof itself !== 'string' && !isDirectory(itself.mode);
  }
}
