import { VANISH_MS } from '../index/limits.ts';
import type { Tree } from '../index/tree.ts';
import type { TreeNode } from '../index/tree-node.ts';

/** Known nodes that are missing from their place and may still reappear under another name, oldest first. */
export class Vanished {
  readonly #nodes = new Set<TreeNode>();

  /** Number of missing nodes. */
  get size(): number {
    return this.#nodes.size;
  }

  /** Marks a node as missing since `now_ms` (monotonic); `generation` is the last one of the pending names. */
  add(node: TreeNode, now_ms: number, generation: number): void {
    if (!node.known || node.missing_since_ms >= 0) return;
    node.missing_since_ms = now_ms;
    node.missing_after = generation;
    this.#nodes.add(node);
  }

  /** When the first node expires, in monotonic ms; null if none is missing. */
  nextDueMs(): number | null {
    for (const node of this.#nodes) {
      if (node.known && node.missing_since_ms >= 0) return node.missing_since_ms + VANISH_MS;
      this.#nodes.delete(node);
    }
    return null;
  }

  /** The generation up to which all names must be observed before the first node counts as gone; Infinity if none is missing. */
  firstAfter(): number {
    this.nextDueMs();
    for (const node of this.#nodes) return node.missing_after;
    return Number.POSITIVE_INFINITY;
  }

  /**
   * The nodes, at most `max`, that have been missing for `VANISH_MS` and whose earlier signals have all been observed.
   * `isReachable` says whether a directory is at its place: a node below a missing directory goes with that directory.
   */
  expired(
    tree: Tree,
    now_ms: number,
    oldest_generation: number,
    max: number,
    isReachable: (dir: TreeNode) => boolean,
  ): Set<TreeNode> {
    const expired = new Set<TreeNode>();
    for (const node of this.#nodes) {
      if (!node.known || node.missing_since_ms < 0) {
        this.#nodes.delete(node);
        continue;
      }
      if (node.missing_since_ms + VANISH_MS > now_ms || node.missing_after >= oldest_generation) break;
      if (node.parent === tree.root || (node.parent && isReachable(node.parent))) {
        expired.add(node);
        if (expired.size >= max) break;
      } else {
        this.#nodes.delete(node);
        node.missing_since_ms = -1;
      }
    }
    return expired;
  }
}
