import type { Database } from 'better-sqlite3';
import type { Mark } from '../files/high-water.ts';
import { checkOutboxRow } from '../rows/outbox-row.ts';
import type { OutboxRow } from '../rows/rows.ts';
import { ATTEMPT_COLUMNS, hasOwnSchema, otherFormat } from '../rows/schema.ts';
import { damage } from '../store-errors.ts';

/** The most attempts that are read of one record. */
const ATTEMPTS_MAX = 1_000;

/**
 * The row of an open outbox that processes of the sandbox may have written: nothing in its schema is executed. Throws
 * damage where its tables or numbers are not its daemon's.
 */
export function trustedOutboxRow(db: Database): OutboxRow {
  db.pragma('locking_mode = EXCLUSIVE');
  db.pragma('trusted_schema = OFF');
  db.pragma('query_only = ON');
  const reason = otherFormat(db);
  if (reason !== null) throw damage(reason);
  if (!hasOwnSchema(db)) throw damage('the outbox has tables that no daemon created');
  checkOutboxRow(db);
  return db.prepare('SELECT * FROM outbox').get() as OutboxRow;
}

/** The attempts of a record as they are stored, in order. */
export function storedAttempts(db: Database, id: number): unknown[] {
  return db
    .prepare(`SELECT ${ATTEMPT_COLUMNS} FROM attempts WHERE record_id = ? ORDER BY attempt LIMIT ?`)
    .all(id, ATTEMPTS_MAX);
}

/** A count that the outbox holds; 0 where the value is not a count. */
export function countOf(value: unknown): number {
  return Number.isSafeInteger(value) ? Math.max(0, value as number) : 0;
}

/** How many pending records are missing from the end of the outbox, by the high-water mark. */
export function missingAtEnd({ next_sequence }: OutboxRow, mark: Mark | null): number {
  if (!mark) return 0;
  return Math.min(countOf(mark.pending), Math.max(0, countOf(mark.sequence) + 1 - next_sequence));
}
