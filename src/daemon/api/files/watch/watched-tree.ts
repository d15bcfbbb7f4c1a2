import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FileModified } from '../../../../contract/events.ts';
import { loadTree } from '../../../../watch/index/stored-tree.ts';
import type { Tree } from '../../../../watch/index/tree.ts';
import type { CommitAnswer, TreeBatch, TreeRow, TreeStore } from '../../../../watch/index/tree-store.ts';

const PAGE_ROWS = 2_000;

/** Who is told of the changes in a tree. */
export interface TreeFollower {
  /** Called before the changes are part of the tree's state. */
  onChanges(changes: readonly FileModified[]): void;
  /** From now on another tree tells of the changes; its state may differ from the one so far. */
  onMoved(tree: WatchedTree): void;
}

/** A state of a watched tree, which no longer changes. */
export class TreeState {
  readonly #directory: string;
  readonly #rows: ReadonlyMap<number, string>;
  #tree: Promise<Tree> | null = null;

  constructor(directory: string, rows: ReadonlyMap<number, string>) {
    this.#directory = directory;
    this.#rows = rows;
  }

  /** The tree of this state, one for all who ask; other work goes on while it is made. */
  tree(): Promise<Tree> {
    this.#tree ??= loadTree(this.#directory, pagesOf(this.#rows)).then(({ tree }) => tree);
    return this.#tree;
  }
}

/** A watched tree in memory: its state, and those who follow it. */
export class WatchedTree implements TreeStore {
  readonly followers = new Set<TreeFollower>();
  readonly #directory: string;
  readonly #rows = new Map<number, string>();
  /** Freed once nobody compares it. */
  #state: WeakRef<TreeState> | null = null;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The state that the followers know; one for all who ask before it changes. */
  state(): TreeState {
    const known = this.#state?.deref();
    if (known) return known;
    const state = new TreeState(this.#directory, new Map(this.#rows));
    this.#state = new WeakRef(state);
    return state;
  }

  load(): AsyncIterable<TreeRow[]> {
    return pagesOf(this.#rows);
  }

  /** Never waits for a follower. */
  async commit({ events, put, drop }: TreeBatch): Promise<CommitAnswer> {
    const changes = events.map(({ payload }) => payload);
    if (changes.length > 0) for (const follower of [...this.followers]) follower.onChanges(changes);
    for (const { id, entry } of put) this.#rows.set(id, entry);
    for (const id of drop) this.#rows.delete(id);
    this.#state = null;
    return 'committed';
  }
}

async function* pagesOf(rows: ReadonlyMap<number, string>): AsyncGenerator<TreeRow[]> {
  let page: TreeRow[] = [];
  for (const [id, entry] of rows) {
    page.push({ id, entry });
    if (page.length < PAGE_ROWS) continue;
    yield page;
    page = [];
    await nextTurn();
  }
  yield page;
}
