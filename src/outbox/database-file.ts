import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { prepareDatabase } from './schema.ts';

const DATABASE = 'outbox.db';

/** Everything that SQLite keeps beside a database belongs to it. */
export const DATABASE_FILES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, `${DATABASE}-journal`];

const MAGIC = 'SQLite format 3\0';

/** The outbox's database in a state directory. */
export function databasePath(state_dir: string): string {
  return join(state_dir, DATABASE);
}

/** Makes a file with mode 0600 under any umask; SQLite gives the files beside it the same mode. */
export function touch(path: string): void {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  fchmodSync(file, 0o600);
  closeSync(file);
}

/** Opens or makes the database. Throws where SQLite cannot use it. */
export function openDatabase(state_dir: string): Database.Database {
  const path = databasePath(state_dir);
  touch(path);
  const db = new Database(path, { timeout: 0 });
  try {
    prepareDatabase(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Whether an error of SQLite says that a file's contents are wrong, rather than that the disk has trouble. */
export function isDamage(error: unknown): boolean {
  const code = (error as { code?: string }).code ?? '';
  return /^SQLITE_(CORRUPT|NOTADB)/.test(code);
}

/** Whether the database's beginning is missing or wrong although there was one. */
export function hasLostItsHeader(state_dir: string): boolean {
  const path = databasePath(state_dir);
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size(path) === 0) return size(`${path}-wal`) > 0;
  const file = openSync(path, 'r');
  const bytes = Buffer.alloc(MAGIC.length);
  readSync(file, bytes, 0, bytes.length, 0);
  closeSync(file);
  return bytes.toString('latin1') !== MAGIC;
}

/** Puts the database's files aside under a name that is free; returns the path of the first. */
export function moveAside(state_dir: string): string {
  return aside(state_dir, renameSync);
}

/** The same, with the files also left where they are. */
export function copyAside(state_dir: string): string {
  return aside(state_dir, (from, to) => {
    copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    chmodSync(to, 0o600);
    syncPath(to);
  });
}

function aside(state_dir: string, put: (from: string, to: string) => void): string {
  let name = '';
  for (let n = 1; name === '' || existsSync(join(state_dir, name)); n++) name = `outbox-damaged-${n}.db`;
  for (const file of DATABASE_FILES) {
    const path = join(state_dir, file);
    if (existsSync(path)) put(path, join(state_dir, file.replace(DATABASE, name)));
  }
  syncPath(state_dir);
  return join(state_dir, name);
}

/** Removes the database's files, which are kept elsewhere. */
export function removeDatabase(state_dir: string): void {
  for (const file of DATABASE_FILES) rmSync(join(state_dir, file), { force: true });
}

/** Makes a file's contents, or a directory's names, durable. */
export function syncPath(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
