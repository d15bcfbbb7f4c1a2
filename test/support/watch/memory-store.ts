import type { CommitAnswer, TreeBatch, TreeRow, TreeStore } from '../../../src/watch/index/tree-store.ts';

/** A store of the last known tree in memory, which can be told to refuse. */
export class MemoryStore implements TreeStore {
  readonly rows = new Map<number, string>();
  readonly events: TreeBatch['events'] = [];
  /** What `commit` answers. */
  answer: CommitAnswer = 'committed';
  /** How many events it takes at once. */
  room = Number.POSITIVE_INFINITY;
  commits = 0;
  largest_commit = 0;
  onCommit: ((batch: TreeBatch) => void) | null = null;

  async *load(): AsyncIterable<TreeRow[]> {
    const rows = [...this.rows].map(([id, entry]) => ({ id, entry }));
    for (let i = 0; i < rows.length; i += 100) yield rows.slice(i, i + 100);
  }

  async commit(batch: TreeBatch): Promise<CommitAnswer> {
    this.commits++;
    if (this.answer !== 'committed') return this.answer;
    if (batch.events.length > this.room) return 'full';
    this.largest_commit = Math.max(this.largest_commit, batch.events.length);
    for (const row of batch.put) this.rows.set(row.id, row.entry);
    for (const id of batch.drop) this.rows.delete(id);
    for (const event of batch.events) this.events.push(event);
    this.onCommit?.(batch);
    return 'committed';
  }
}
