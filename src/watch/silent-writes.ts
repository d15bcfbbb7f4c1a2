import type { Clock } from '../base/clock.ts';
import { contentDiffers, isFile, sameIdentity } from './index/file-stat.ts';
import { COMPARED_AT_ONCE, LISTED_AHEAD_MAX, RESCAN_MIN_MS, SILENT_SHARE } from './index/limits.ts';
import type { Tree } from './index/tree.ts';
import type { TreeNode } from './index/tree-node.ts';
import type { Prober } from './prober.ts';
import type { RemoteMounts } from './remote-mounts.ts';
import type { PendingNames } from './signals/pending-names.ts';

interface SilentWritesOptions {
  tree: Tree;
  pending: PendingNames;
  prober: Prober;
  mounts: RemoteMounts;
  clock: Clock;
}

/**
 * Finds writes that gave no signal, as those through a mapping do: the known files of a directory are compared some time
 * after anything in it was signalled, and again as long as that finds something. All directories that were signalled
 * meanwhile are compared in one round, a few files at a time. However many signals there are, rounds take at most
 * 1 / `SILENT_SHARE` of the time. Source: contract section 6.
 */
export class SilentWrites {
  readonly #options: SilentWritesOptions;
  /** The directories of the next round. */
  #signalled = new Set<TreeNode>();
  /** The files that are left in the present round; null between rounds. */
  #round: Generator<TreeNode, void> | null = null;
  #cost_ms = 0;
  #next_round_ms = 0;

  constructor(options: SilentWritesOptions) {
    this.#options = options;
  }

  /** Whether a round goes on at once. */
  get is_comparing(): boolean {
    return this.#round !== null && !this.#isAheadEnough();
  }

  /** Notes a directory in which anything was signalled. */
  signal(dir: TreeNode): void {
    if (this.#signalled.size === 0 && !this.#round) {
      const soonest_ms = this.#options.clock.monotonicMs() + RESCAN_MIN_MS;
      this.#next_round_ms = Math.max(this.#next_round_ms, soonest_ms);
    }
    this.#signalled.add(dir);
  }

  /** When there is something to compare, in monotonic ms; null if nothing was signalled, or what was found goes first. */
  nextDueMs(): number | null {
    if (this.#isAheadEnough()) return null;
    if (this.#round) return this.#options.clock.monotonicMs();
    return this.#signalled.size > 0 ? this.#next_round_ms : null;
  }

  /** Compares a few files, if that is due. `may_compare`: false while the tree is not there, or is read whole anyway. */
  run(may_compare: boolean): void {
    const { clock } = this.#options;
    if (!may_compare) {
      this.#signalled.clear();
      this.#round = null;
      return;
    }
    const began_ms = clock.monotonicMs();
    const due_ms = this.nextDueMs();
    if (due_ms === null || (!this.#round && due_ms > began_ms)) return;
    this.#round ??= this.#begin();
    let left = COMPARED_AT_ONCE;
    let is_over: boolean | undefined = false;
    while (!is_over && left-- > 0) is_over = this.#round.next().done;
    const now_ms = clock.monotonicMs();
    this.#cost_ms += now_ms - began_ms;
    if (!is_over) return;
    this.#round = null;
    this.#next_round_ms = now_ms + Math.max(RESCAN_MIN_MS, this.#cost_ms * SILENT_SHARE);
  }

  #isAheadEnough(): boolean {
    const { pending, tree } = this.#options;
    return pending.unobserved + tree.unstored >= LISTED_AHEAD_MAX;
  }

  #begin(): Generator<TreeNode, void> {
    const dirs = this.#signalled;
    this.#signalled = new Set();
    this.#cost_ms = 0;
    return this.#compareAll(dirs);
  }

  *#compareAll(dirs: Set<TreeNode>): Generator<TreeNode, void> {
    const { prober, mounts } = this.#options;
    for (const dir of dirs) {
      yield dir;
      if (!dir.known || mounts.isAside(dir.dev) || !prober.places()(dir)) continue;
      // No more than there are now: names that come and go would have no end.
      let left = dir.children?.size ?? 0;
      for (const node of dir.children?.values() ?? []) {
        if (left-- <= 0) break;
        if (isFile(node.mode) && this.#differs(dir, node)) this.#found(dir, node);
        yield node;
        if (!dir.known) break;
      }
    }
  }

  #differs(dir: TreeNode, node: TreeNode): boolean {
    const stat = this.#options.prober.probe(dir, node.name);
    return typeof stat !== 'string' && sameIdentity(node, stat) && contentDiffers(node, stat);
  }

  #found(dir: TreeNode, { name }: TreeNode): void {
    const { mounts, pending } = this.#options;
    if (pending.has(dir, name) || !mounts.takes(dir.dev, true)) return;
    pending.addWritten(dir, name);
    this.#signalled.add(dir);
  }
}
