import Database from 'better-sqlite3';
import type { StoredDelivery, StoredRecord } from './rows.ts';
import type { SqliteStore } from './sqlite-store.ts';

const TREE_ROWS = 1_000;

interface TreeRow {
  id: number;
  entry: string;
}

/**
 * Takes over what can still be read of a damaged outbox that was set aside: every record that is whole, with its
 * attempts, and the watched tree. Pages that cannot be read are stepped over, id by id. Call it between `begin` and
 * `commit` of the store. Tells how many of the records that were taken over are pending.
 */
export function salvage(path: string, store: SqliteStore, last_id: number): number {
  const damaged = new Database(path, { timeout: 0 });
  try {
    damaged.pragma('locking_mode = EXCLUSIVE');
    damaged.pragma('query_only = ON');
    tree(damaged, store);
    return records(damaged, store, last_id);
  } finally {
    readable(() => damaged.close());
  }
}

function records(damaged: Database.Database, store: SqliteStore, last_id: number): number {
  // Not by an index, which may be what is damaged.
  const next = 'SELECT * FROM records NOT INDEXED WHERE id > ? ORDER BY id LIMIT 1';
  const delivery = 'SELECT * FROM deliveries NOT INDEXED WHERE id = ?';
  const attempts = 'SELECT * FROM attempts WHERE record_id = ?';
  let pending = 0;
  for (let id = 0; id < last_id; ) {
    const row = readable(() => (damaged.prepare(next).get(id) as StoredRecord | undefined) ?? null);
    if (row === null) break;
    id = row?.id ?? id + 1;
    if (!row) continue;
    const stands = readable(() => damaged.prepare(delivery).get(row.id) as StoredDelivery | undefined);
    const made = readable(() => damaged.prepare(attempts).all(row.id) as Record<string, unknown>[]) ?? [];
    if (store.takeOver(row, stands ?? null, made) === 'pending') pending += 1;
  }
  return pending;
}

function tree(damaged: Database.Database, store: SqliteStore): void {
  const next = 'SELECT id, entry FROM tree WHERE id > ? ORDER BY id LIMIT ?';
  for (let last_id = Number.MIN_SAFE_INTEGER; ; ) {
    const rows = readable(() => damaged.prepare(next).all(last_id, TREE_ROWS)) as TreeRow[] | undefined;
    store.takeOverTree(rows ?? []);
    const last = rows?.at(-1);
    if (!last) return;
    last_id = last.id;
  }
}

/** What cannot be read is left out: the file stays for whoever wants to look closer. */
function readable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
