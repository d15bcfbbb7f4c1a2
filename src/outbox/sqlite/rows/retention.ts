import type { OwnState } from './other-sandboxes.ts';
import type { OutboxRow } from './rows.ts';
import type { Statements } from './statements.ts';

/** How long, and how much at most, is kept of the records in a final state. Source: contract section 3, Retention. */
export interface Keep {
  state: OwnState;
  keep_ms: number;
  keep_records: number;
  /** Of delivered records alone: the others count against the bounds. */
  keep_bytes: number;
}

/** Whether `takePrunable` would find a record. `now_ms` is the store's clock. */
export function hasPrunable(sql: Statements, row: OutboxRow, rule: Keep, now_ms: number): boolean {
  if (surplus(row, rule) > 0) return true;
  const [oldest] = sql.oldest.all(row.number, rule.state, 1) as { finished_ms: number }[];
  return oldest !== undefined && oldest.finished_ms <= now_ms - rule.keep_ms;
}

/** How many records are too many by number; at least 1 where they are too large. */
function surplus(row: OutboxRow, { state, keep_records, keep_bytes }: Keep): number {
  const is_large = state === 'delivered' && row.delivered_bytes > keep_bytes;
  return Math.max(row[state] - keep_records, is_large && row[state] > 0 ? 1 : 0);
}

/**
 * Ids of up to `limit` finished records that were kept long enough, or are too many, oldest first. `row` no longer
 * counts them: the caller removes them. `now_ms` is the store's clock.
 */
export function takePrunable(
  sql: Statements,
  row: OutboxRow,
  rule: Keep,
  now_ms: number,
  limit: number,
): number[] {
  const { state, keep_ms, keep_bytes } = rule;
  const rows = sql.oldest.all(row.number, state, limit) as {
    id: number;
    finished_ms: number;
    size_bytes: number;
  }[];
  const too_many = surplus(row, { ...rule, keep_bytes: Number.POSITIVE_INFINITY });
  const cutoff_ms = now_ms - keep_ms;
  const counted = state === 'delivered' ? 'delivered_bytes' : 'bytes';
  const gone: number[] = [];
  for (const { id, finished_ms, size_bytes } of rows) {
    const is_large = state === 'delivered' && row.delivered_bytes > keep_bytes;
    if (gone.length >= too_many && finished_ms > cutoff_ms && !is_large) break;
    gone.push(id);
    row[counted] -= size_bytes;
  }
  row[state] -= gone.length;
  return gone;
}
