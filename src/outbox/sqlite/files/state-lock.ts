import { closeSync, openSync, readSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { StartError } from '../../../contract/errors.ts';
import { troubleOf } from '../store-errors.ts';
import { touch } from './database-file.ts';
import { prepareStateDir } from './state-files.ts';

/** Where SQLite keeps `user_version` in its header: here the owner's pid, for the message that a second daemon prints. */
const OWNER_PID_OFFSET = 60;

/** What a name leads to. */
export interface FileIdentity {
  dev: number;
  ino: number;
}

/** The file that a name leads to now. */
export function identityOf(path: string): FileIdentity | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** Another daemon has the state directory. */
export class DirectoryTakenError extends StartError {}

/** Whether two identities are of the same file. */
export function isSameFile(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.ino === other?.ino && one?.dev === other?.dev;
}

/**
 * The state directory, held for this process until it ends, however it ends: the lock is the kernel's. It stays with
 * the thread that took it while the database changes hands. Source: contract section 3, One owner.
 */
export class StateLock {
  readonly #state_dir: string;
  readonly #path: string;
  #db: Database | null = null;
  #identity: FileIdentity | undefined;

  /** `held`: the lock's file where another thread of this process holds it; without it the lock is taken here. */
  constructor(state_dir: string, held: FileIdentity | null = null) {
    this.#state_dir = state_dir;
    this.#path = join(state_dir, 'lock');
    if (held) this.#identity = held;
    else this.take();
  }

  /** The lock's file, for another thread's `StateLock`. */
  get identity(): FileIdentity | null {
    return this.#identity ?? null;
  }

  /** Whether the name still leads to the file that is locked. */
  isInPlace(): boolean {
    return isSameFile(identityOf(this.#path), this.#identity);
  }

  /** Takes the lock under its name, even if that leads to another file by now. Throws StartError where it is taken. */
  take(): void {
    prepareStateDir(this.#state_dir);
    touch(this.#path);
    const taken = this.#open();
    this.#db?.close();
    this.#db = taken;
    const { dev, ino } = statSync(this.#path);
    this.#identity = { dev, ino };
  }

  /** Releases the lock. Idempotent. */
  release(): void {
    this.#db?.close();
    this.#db = null;
  }

  #open(): Database {
    try {
      return takeLock(this.#path);
    } catch (error) {
      // It holds nothing but the lock, and a lock that is held is refused before its contents are read.
      if (troubleOf(error) === 'damage') {
        truncateSync(this.#path);
        return takeLock(this.#path);
      }
      if (!/locked|busy/i.test((error as Error).message)) throw error;
      throw new DirectoryTakenError(
        `state directory ${this.#state_dir} is in use by another sandboxd${ownerPid(this.#path)}`,
      );
    }
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

function ownerPid(path: string): string {
  const file = openSync(path, 'r');
  const bytes = Buffer.alloc(4);
  const read = readSync(file, bytes, 0, 4, OWNER_PID_OFFSET);
  closeSync(file);
  return read === 4 && bytes.readUInt32BE() > 0 ? ` (pid ${bytes.readUInt32BE()})` : '';
}
