import type { FileEvent } from './classify/events.ts';
import type { FileStat } from './index/file-stat.ts';
import type { TreeNode } from './index/tree.ts';

/** A name, and how many signals of appearing or going it had had then: with one that was unknown, even is gone. */
export interface Step {
  look: Observation;
  renames: number;
}

/** One name, the signals about it since it was last settled, and what a look at it told. */
export interface Observation {
  dir: TreeNode;
  name: string;
  /** null: there is nothing by this name. */
  facts: FileStat | null;
  /** Signals that an entry of this name appeared or went. */
  renames: number;
  /** Whether a signal said that content or attributes changed. */
  changed: boolean;
  /** The name that was signalled right before this one's last appearing or going: where a move came from. */
  from: Step | null;
  /** The same of this one's first. */
  first_from: Step | null;
  /** The names that have this one as their `from`; null for none. */
  followers: Observation[] | null;
  /** How often this look contradicted the tree. */
  races: number;
  /** Wall time of the first signal, in ms. */
  happened_at_ms: number;
}

/** What the looks were taken against. */
export interface ClassifierInput {
  looks: readonly Observation[];
  /** Known nodes that are certainly not at their place any more. */
  displaced: ReadonlySet<TreeNode>;
  /** Missing nodes that had their time to turn up elsewhere. */
  expired: ReadonlySet<TreeNode>;
  /** Removals stop here and go on with the next settling. */
  events_max: number;
  /** Timestamps from here on may hide a later write: ms since the epoch. */
  racy_after_ms: number;
}

export interface Classified {
  events: FileEvent[];
  /** Directories that are new, that moved with all below them, and that are gone. */
  appeared: TreeNode[];
  moved: TreeNode[];
  gone: TreeNode[];
  /** Nodes that went missing from their place. */
  missing: TreeNode[];
  /** Looks that wait until what was at their place is found elsewhere or is gone. */
  waiting: Observation[];
  /** Looks that contradict the tree: something moved between two of them. */
  raced: Observation[];
  /** Other names of files whose content changed. */
  also_changed: TreeNode[];
}
