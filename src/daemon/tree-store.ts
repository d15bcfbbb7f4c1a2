import type { OutboxClient } from '../outbox/sqlite/client.ts';
import type { CommitAnswer, TreeBatch, TreeRow, TreeStore } from '../watch/index/tree-store.ts';

const PAGE_ROWS = 2_000;

/** The watched tree in the outbox's database: stored in the same transaction as the events about its changes. */
export class OutboxTreeStore implements TreeStore {
  readonly #store: OutboxClient;

  constructor(store: OutboxClient) {
    this.#store = store;
  }

  /** Reads the stored tree in pages, ordered by id. */
  async *load(): AsyncIterable<TreeRow[]> {
    let last_id = Number.MIN_SAFE_INTEGER;
    for (;;) {
      const rows = await this.#store.tree(last_id, PAGE_ROWS);
      const last = rows.at(-1);
      if (!last) return;
      yield rows;
      last_id = last.id;
    }
  }

  /** Stores events and tree changes together. */
  async commit({ events, put, drop }: TreeBatch): Promise<CommitAnswer> {
    const drafts = events.map(({ happened_at_ms, payload }) => ({
      event_type: 'file.modified' as const,
      happened_at_ms,
      payload: JSON.stringify(payload),
    }));
    const { outcome } = await this.#store.append({ drafts, tree: { put, drop } });
    if (outcome === 'full') return 'full';
    return outcome === 'unavailable' ? 'unavailable' : 'committed';
  }
}
