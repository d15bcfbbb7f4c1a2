import type { FileModified } from '../../contract/events.ts';

/** One known file or directory as it is stored; `entry` means nothing to the store. */
export interface TreeRow {
  id: number;
  entry: string;
}

export interface TreeBatch {
  events: { happened_at_ms: number; payload: FileModified }[];
  put: TreeRow[];
  drop: number[];
}

export type CommitAnswer = 'committed' | 'full' | 'unavailable';

/** Where the last known tree is kept, beside the events that its changes caused. */
export interface TreeStore {
  /** All rows of the last committed tree, in pages, in no particular order. */
  load(): AsyncIterable<TreeRow[]>;
  /**
   * Commits events and tree changes in one transaction. `full` or `unavailable`: nothing was committed, for certain. On a
   * disk that hangs it is answered when that is over.
   */
  commit(batch: TreeBatch): Promise<CommitAnswer>;
}
