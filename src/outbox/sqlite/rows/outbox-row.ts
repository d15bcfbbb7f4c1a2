import type { Database } from 'better-sqlite3';
import { damage } from '../store-errors.ts';
import type { OutboxRow } from './rows.ts';

/** What a new outbox counts by itself, as its records are taken over. */
const OWN_COLUMNS = [
  'id',
  'number',
  'first_id',
  'pending',
  'delivered',
  'failed',
  'expired',
  'foreign',
  'bytes',
  'pending_bytes',
  'delivered_bytes',
];

/** Whether the numbers of an outbox are valid. */
export function isOutboxRow(row: OutboxRow): boolean {
  const { sandbox_id, boot_id, next_sequence, next_id, number, first_id, clock_ms, clock_wall_ms, boot_ms } =
    row;
  const { pending, delivered, failed, expired, foreign, bytes, pending_bytes, delivered_bytes } = row;
  const counts = [pending, delivered, failed, expired, foreign, bytes, pending_bytes, delivered_bytes];
  return (
    (sandbox_id === null || typeof sandbox_id === 'string') &&
    typeof boot_id === 'string' &&
    [next_sequence, next_id].every((next) => Number.isSafeInteger(next) && next >= 1) &&
    [...counts, number, first_id, clock_ms, clock_wall_ms, boot_ms].every(
      (value) => Number.isSafeInteger(value) && value >= 0,
    )
  );
}

/**
 * Throws damage where the outbox's row is invalid, or where not every record that it counts as pending can be found:
 * SQLite does not notice rows that are out of order or missing from an index.
 */
export function checkOutboxRow(db: Database): void {
  const row = db.prepare('SELECT * FROM outbox').get() as OutboxRow | undefined;
  if (!row || !isOutboxRow(row)) throw damage('the counters of the outbox are damaged');
  if (row.pending === 0) return;
  const count = (sql: string, ...values: unknown[]) =>
    db
      .prepare(sql)
      .pluck()
      .get(...values);
  const found = count(
    `SELECT count(*) FROM deliveries NOT INDEXED CROSS JOIN records NOT INDEXED USING (id)
    WHERE state = 'pending' AND due_ms IS NOT NULL AND sandbox = ? AND sandbox_id = ?`,
    row.number,
    row.sandbox_id,
  );
  const indexed = count('SELECT count(*) FROM deliveries WHERE due_ms > 0');
  const tried = count('SELECT count(*) FROM deliveries NOT INDEXED WHERE due_ms > 0');
  if (found !== row.pending || indexed !== tried)
    throw damage('the outbox counts pending records that it does not contain');
}

/** Makes a new outbox continue where another one ended: its sandbox, its numbers and its clock. */
export function goOnFrom(db: Database, row: Partial<OutboxRow>): void {
  const now = db.prepare('SELECT * FROM outbox').get() as Record<string, unknown>;
  const columns = Object.keys(now).filter((name) => name in row && !OWN_COLUMNS.includes(name));
  db.prepare(`UPDATE outbox SET ${columns.map((name) => `"${name}" = @${name}`).join(', ')}`).run(row);
  // Where ids and sequences of what is taken over are as far apart as they ever were cannot be known.
  db.prepare('UPDATE outbox SET first_id = next_id').run();
}
