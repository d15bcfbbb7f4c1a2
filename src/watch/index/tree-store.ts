import type { FileModified } from '../../contract/events.ts';

/** A known file or directory as it is stored. `entry` is opaque to the store. */
export interface TreeRow {
  id: number;
  entry: string;
}

/** What one commit stores: events in order, rows to insert or replace, and ids of rows to delete. */
export interface TreeBatch {
  events: { happened_at_ms: number; payload: FileModified }[];
  put: TreeRow[];
  drop: number[];
}

/** Whether a batch was committed; `full` and `unavailable` mean that nothing was. */
export type CommitAnswer = 'committed' | 'full' | 'unavailable';

/** Stores the last known tree together with the events that its changes caused. */
export interface TreeStore {
  /** Yields all rows of the last committed tree in pages, in no particular order. */
  load(): AsyncIterable<TreeRow[]>;
  /**
   * Commits events and tree changes in one transaction. With `full` or `unavailable` it is certain that nothing was
   * committed. While the disk hangs, the promise stays pending.
   */
  commit(batch: TreeBatch): Promise<CommitAnswer>;
}
