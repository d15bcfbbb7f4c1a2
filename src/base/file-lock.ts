import { closeSync, openSync, readSync, truncateSync } from 'node:fs';
import Sqlite, { type Database } from 'better-sqlite3';
import { touch } from './durable-file.ts';

/** Where SQLite keeps `user_version` in its header: here the holder's pid, for the message that another program prints. */
const HOLDER_PID_OFFSET = 60;

/** What a file holds that is not what the lock has written; it is worth nothing. */
const DAMAGE = /^SQLITE_(CORRUPT|NOTADB|FORMAT|ERROR|SCHEMA|CONSTRAINT)/;

/** A file that another program, or another lock of this one, has locked. */
export class FileLockedError extends Error {
  /** The holder as `pid 12` in parentheses behind a space; empty where it is not known. */
  readonly holder: string;

  constructor(path: string) {
    const holder = holderOf(path);
    super(`${path} is locked${holder}`);
    this.holder = holder;
  }
}

/** A file that is locked for this process until it ends, however it ends: the lock is the kernel's. */
export class FileLock {
  readonly #db: Database;

  /** Makes the file with mode 0600 where it is missing. Throws `FileLockedError`, or the system's error. */
  constructor(path: string) {
    touch(path);
    this.#db = lockedFile(path);
  }

  /** Releases the lock; the file stays. Idempotent. */
  release(): void {
    this.#db.close();
  }
}

function lockedFile(path: string): Database {
  try {
    return takeLock(path);
  } catch (error) {
    // It holds nothing but the lock, and a lock that is held is refused before its contents are read.
    if (DAMAGE.test(String((error as { code?: string }).code))) {
      truncateSync(path);
      return takeLock(path);
    }
    if (!/locked|busy/i.test((error as Error).message)) throw error;
    throw new FileLockedError(path);
  }
}

function takeLock(path: string): Database {
  const lock = new Sqlite(path, { timeout: 0 });
  try {
    lock.pragma('journal_mode = MEMORY');
    // It holds nothing that is to outlive this process.
    lock.pragma('synchronous = OFF');
    lock.pragma('locking_mode = EXCLUSIVE');
    lock.exec('BEGIN EXCLUSIVE');
    lock.pragma(`user_version = ${process.pid}`);
    lock.exec('COMMIT');
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

function holderOf(path: string): string {
  const file = openSync(path, 'r');
  const bytes = Buffer.alloc(4);
  const read = readSync(file, bytes, 0, 4, HOLDER_PID_OFFSET);
  closeSync(file);
  return read === 4 && bytes.readUInt32BE() > 0 ? ` (pid ${bytes.readUInt32BE()})` : '';
}
