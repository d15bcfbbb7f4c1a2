import { closeSync, lstatSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { replaceFileNow, touch } from '../../../base/durable-file.ts';
import { checkOutboxRow } from '../rows/outbox-row.ts';
import { emptyOutbox, hasOwnSchema, prepareDatabase } from '../rows/schema.ts';
import { damage } from '../store-errors.ts';

/** The database's name; the files beside it have it as their beginning. */
export const DATABASE = 'outbox.db';

/** Everything that SQLite keeps beside a database belongs to it. */
export const DATABASE_FILES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, `${DATABASE}-journal`];

const MAGIC = 'SQLite format 3\0';

/** The outbox's database in a state directory. */
export function databasePath(state_dir: string): string {
  return join(state_dir, DATABASE);
}

/** What is read of a smaller one is in memory, and moving it to another thread takes no time. */
const SMALL_BYTES = 1024 * 1024;

/** Whether the database is so small that a start may open it in the main thread. */
export function isSmallOutbox(state_dir: string): boolean {
  const path = databasePath(state_dir);
  const sizes = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  return sizes.every((size) => size <= SMALL_BYTES);
}

/** Opens or makes the database. Throws where SQLite cannot use it, or it cannot be what the outbox wrote. */
export function openOutboxDatabase(state_dir: string): Database.Database {
  const path = databasePath(state_dir);
  const is_new = !lstatSync(path, { throwIfNoEntry: false });
  // As a whole: made by SQLite it is synced seven times.
  if (is_new) replaceFileNow(path, emptyOutbox());
  else touch(path);
  const db = new Database(path, { timeout: 0 });
  try {
    prepareDatabase(db);
    if (is_new) return db;
    if (!hasOwnSchema(db)) throw damage('the outbox has unknown or missing tables');
    checkPages(db);
    checkOutboxRow(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A larger database is not read whole at a start: reading it would take longer than the rest of the start. */
const CHECKED_MAX_BYTES = 16 * 1024 * 1024;

/** Throws damage where the pages contradict each other: what is written to such a file can overwrite records. */
function checkPages(db: Database.Database): void {
  const size_bytes = ['page_count', 'page_size']
    .map((name) => db.pragma(name, { simple: true }) as number)
    .reduce((product, value) => product * value);
  if (size_bytes > CHECKED_MAX_BYTES) return;
  const result = db.pragma('quick_check(1)', { simple: true });
  if (result !== 'ok') throw damage(`the outbox is damaged: ${result}`);
}

/** Whether a database's beginning is missing or wrong although there was one. */
export function hasLostHeader(path: string): boolean {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size(path) === 0) return size(`${path}-wal`) > 0;
  const file = openSync(path, 'r');
  const bytes = Buffer.alloc(MAGIC.length);
  readSync(file, bytes, 0, bytes.length, 0);
  closeSync(file);
  return bytes.toString('latin1') !== MAGIC;
}
