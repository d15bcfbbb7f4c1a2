import type { FileModified } from '../../../../contract/events.ts';
import type { CommitAnswer, TreeBatch, TreeRow, TreeStore } from '../../../../watch/index/tree-store.ts';

const PAGE_ROWS = 2_000;

/** Who is told of the changes in a tree. */
export interface TreeFollower {
  /** Called before the changes are part of the tree's rows. */
  onChanges(changes: readonly FileModified[]): void;
}

/** The last known state of a watched tree, by row. */
export type TreeRows = ReadonlyMap<number, string>;

/** A watched tree in memory: its state, and those who follow it. */
export class WatchedTree implements TreeStore {
  readonly followers = new Set<TreeFollower>();
  readonly #rows: Map<number, string>;

  /** With the rows of an earlier state, the differences from it are the first changes. */
  constructor(rows: TreeRows = new Map()) {
    this.#rows = new Map(rows);
  }

  /** The state that the followers know. */
  snapshot(): TreeRows {
    return new Map(this.#rows);
  }

  async *load(): AsyncIterable<TreeRow[]> {
    const rows = [...this.#rows].map(([id, entry]) => ({ id, entry }));
    for (let i = 0; i < rows.length; i += PAGE_ROWS) yield rows.slice(i, i + PAGE_ROWS);
  }

  /** Never waits for a follower. */
  async commit({ events, put, drop }: TreeBatch): Promise<CommitAnswer> {
    const changes = events.map(({ payload }) => payload);
    if (changes.length > 0) for (const follower of [...this.followers]) follower.onChanges(changes);
    for (const { id, entry } of put) this.#rows.set(id, entry);
    for (const id of drop) this.#rows.delete(id);
    return 'committed';
  }
}
