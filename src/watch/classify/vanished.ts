import { VANISH_MS } from '../index/limits.ts';
import type { Tree, TreeNode } from '../index/tree.ts';

/** Known nodes that are missing from their place and may still turn up under another name. */
export class Vanished {
  readonly #nodes = new Set<TreeNode>();

  get size(): number {
    return this.#nodes.size;
  }

  /** Notes a node as missing since `now_ms` (monotonic), after the signal with the number `ticket`. */
  add(node: TreeNode, now_ms: number, ticket: number): void {
    if (!node.known || node.missing_since_ms >= 0) return;
    node.missing_since_ms = now_ms;
    node.missing_after = ticket;
    this.#nodes.add(node);
  }

  /** When the first had its time, in monotonic ms; null where none is missing. */
  nextDueMs(): number | null {
    for (const node of this.#nodes) {
      if (node.known && node.missing_since_ms >= 0) return node.missing_since_ms + VANISH_MS;
      this.#nodes.delete(node);
    }
    return null;
  }

  /** The last signal that has to be looked at before the first one counts as gone. */
  firstAfter(): number {
    this.nextDueMs();
    for (const node of this.#nodes) return node.missing_after;
    return Number.POSITIVE_INFINITY;
  }

  /**
   * The nodes that had their time, when every signal from before has been looked at. One below a directory that is
   * missing too goes with that directory: `isReachable` tells.
   */
  expired(
    tree: Tree,
    now_ms: number,
    oldest_ticket: number,
    max: number,
    isReachable: (dir: TreeNode) => boolean,
  ): Set<TreeNode> {
    const expired = new Set<TreeNode>();
    for (const node of this.#nodes) {
      if (!node.known || node.missing_since_ms < 0) {
        this.#nodes.delete(node);
        continue;
      }
      if (node.missing_since_ms + VANISH_MS > now_ms || node.missing_after >= oldest_ticket) break;
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
