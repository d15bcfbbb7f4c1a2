import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { syncNow, touch } from '../../../base/durable-file.ts';
import { damage } from '../store-errors.ts';
import { DATABASE_FILES, databasePath } from './database-file.ts';
import { moveAside } from './set-aside.ts';

/** A database that is written anew, whole and on stable storage: it takes the place of one that is gone. */
export const RESTORED = 'outbox-restored.db';

/** Writes a copy of a database, as of its last commit, to a path; what is there is replaced. */
export function copyInto(db: Database, path: string): void {
  rmSync(path, { force: true, recursive: true });
  touch(path);
  db.prepare('VACUUM INTO ?').run(path);
}

/**
 * Writes the database anew under its name, from a connection whose files were removed or replaced, and closes that.
 * `is_foreign`: there is something under its names that is not its own, which is put aside. The log goes before the
 * new file has its name: SQLite would replay it over the new one.
 */
export function replaceWith(db: Database, state_dir: string, is_foreign: boolean): void {
  const next = `${databasePath(state_dir)}.new`;
  const restored = join(state_dir, RESTORED);
  copyInto(db, next);
  compare(next, db);
  syncNow(next);
  rmSync(restored, { force: true, recursive: true });
  renameSync(next, restored);
  syncNow(state_dir);
  // Before the connection is closed, which removes the log by its name.
  if (is_foreign) moveAside(state_dir);
  db.close();
  putInPlace(state_dir);
}

/** Completes a `replaceWith` that a crash cut off. A database that has its name is newer. */
export function finishRestoring(state_dir: string): void {
  const restored = join(state_dir, RESTORED);
  if (!existsSync(restored)) return;
  if (existsSync(databasePath(state_dir))) rmSync(restored, { force: true, recursive: true });
  else putInPlace(state_dir);
}

function putInPlace(state_dir: string): void {
  const [database, ...beside] = DATABASE_FILES.map((file) => join(state_dir, file));
  for (const path of beside) rmSync(path, { force: true, recursive: true });
  syncNow(state_dir);
  renameSync(join(state_dir, RESTORED), database as string);
  syncNow(state_dir);
}

/** Throws where a copy is not whole or does not hold every record. */
function compare(path: string, original: Database): void {
  const copy = new Sqlite(path, { timeout: 0, fileMustExist: true });
  try {
    const check = copy.pragma('quick_check(1)', { simple: true });
    if (check !== 'ok') throw damage(`the outbox cannot be rewritten: ${check}`);
    const counts = (db: Database) =>
      db.prepare('SELECT count(*), coalesce(sum(id), 0) FROM records NOT INDEXED').raw().get();
    if (String(counts(copy)) !== String(counts(original))) {
      throw damage('the outbox cannot be rewritten: records are missing');
    }
  } finally {
    copy.close();
  }
}
