import type { FileEvent } from './classify/events.ts';
import type { FileStat } from './index/file-stat.ts';
import type { TreeNode } from './index/tree-node.ts';

/**
 * The name that was signalled right before another, as a possible origin of a move, with the number of its `rename`
 * signals at that time. An even number means that a name that was unknown before is gone again.
 */
export interface MoveOrigin {
  observation: Observation;
  renames: number;
}

/** One name, the signals about it since it was last classified, and what was found there. */
export interface Observation {
  dir: TreeNode;
  name: string;
  /** What was found; null if nothing has this name. */
  stat: FileStat | null;
  /** Number of signals that an entry of this name appeared or disappeared. */
  renames: number;
  /** Whether a signal said that content or attributes changed. */
  changed: boolean;
  /** The name signalled right before the last `rename` signal of this one; null if there is none. */
  from: MoveOrigin | null;
  /** The name signalled right before the first `rename` signal of this one; null if there is none. */
  first_from: MoveOrigin | null;
  /** The names that have this one as their `from`; null if there are none. */
  followers: Observation[] | null;
  /** How often an observation of this name contradicted the tree. */
  races: number;
  /** Wall time of the first signal, in ms. */
  happened_at_ms: number;
}

/** What the classifier works on, beside the tree. */
export interface ClassifierInput {
  observations: readonly Observation[];
  /** Known nodes that are certainly no longer at their place. */
  displaced: ReadonlySet<TreeNode>;
  /** Missing nodes that did not reappear in time. */
  expired: ReadonlySet<TreeNode>;
  /** Removals stop at this number of events and continue in the next pass. */
  events_max: number;
  /** Timestamps from this time on may hide a later write: ms since the epoch. */
  racy_after_ms: number;
}

/** What the classifier derives: events in order, and what the pass has to do next. */
export interface Classified {
  events: FileEvent[];
  /** New directories. */
  appeared: TreeNode[];
  /** Directories that moved with everything below them. */
  moved: TreeNode[];
  /** Removed directories. */
  gone: TreeNode[];
  /** Nodes that were found missing from their place. */
  missing: TreeNode[];
  /** Observations that wait until the former file of their place reappears elsewhere or counts as removed. */
  waiting: Observation[];
  /** Observations that contradict the tree, because something moved between two of them. */
  raced: Observation[];
  /** Other names of files whose content changed. */
  also_changed: TreeNode[];
}

/** An observation of a known node that no signal named; `now_ms` is the wall time. */
export function observationWithoutSignal(dir: TreeNode, node: TreeNode, now_ms: number): Observation {
  return {
    dir,
    name: node.name,
    stat: null,
    renames: 0,
    changed: false,
    from: null,
    first_from: null,
    followers: null,
    races: 0,
    happened_at_ms: node.missing_since_ms >= 0 ? node.missing_at_ms : now_ms,
  };
}
