import { renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import type { Clock } from '../base/clock.ts';
import { copyAside, databasePath, moveAside, openDatabase, syncPath, touch } from './database-file.ts';
import { HighWater } from './high-water.ts';
import { lockStateDir, openOutbox, prepareStateDir } from './state-files.ts';

/** What a name leads to. */
interface Identity {
  dev: number;
  ino: number;
}

function identityOf(path: string): Identity | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/**
 * The outbox's files, held for this process: the lock, the database, the mark beside it. The database can be put in
 * order while the daemon runs: written anew where its files were removed, set aside where it turns out to be damaged.
 */
export class OutboxFiles {
  readonly #state_dir: string;
  #lock: Database;
  #db: Database;
  #set_aside: string | null;
  /** The names that a restart looks at, and what they led to when the files were opened. */
  readonly #names: string[];
  #identities: (Identity | undefined)[];
  readonly high_water: HighWater;

  /** Takes the state directory and opens what it holds. Throws StartError, or what SQLite says. */
  constructor(state_dir: string, clock: Clock) {
    this.#state_dir = state_dir;
    prepareStateDir(state_dir);
    this.#lock = lockStateDir(state_dir);
    try {
      const { db, set_aside } = openOutbox(state_dir);
      this.#db = db;
      this.#set_aside = set_aside;
    } catch (error) {
      this.#lock.close();
      throw error;
    }
    this.high_water = new HighWater(join(state_dir, 'high-water'), clock);
    const path = databasePath(state_dir);
    this.#names = [path, `${path}-wal`, join(state_dir, 'lock')];
    this.#identities = this.#names.map(identityOf);
  }

  get db(): Database {
    return this.#db;
  }

  /** Where a damaged outbox went, or null. */
  get set_aside(): string | null {
    return this.#set_aside;
  }

  /** Whether the names still lead to the files that are open: what is written to others is gone with this process. */
  areInPlace(): boolean {
    return this.#names.every((path, i) => {
      const [is, was] = [identityOf(path), this.#identities[i]];
      return is?.ino === was?.ino && is?.dev === was?.dev;
    });
  }

  /** Keeps a copy of the files as they were found, where they are whole but not all that they were. */
  keepAsFound(): void {
    if (this.#set_aside) return;
    this.#set_aside = copyAside(this.#state_dir);
    // The copy was read through descriptors of its own: with their end SQLite's locks on the file ended too.
    this.#db.close();
    this.open();
  }

  /** Writes a copy of the database, as of the last commit, to a path where nothing is. */
  copyTo(path: string): void {
    rmSync(path, { force: true });
    touch(path);
    this.#db.prepare('VACUUM INTO ?').run(path);
  }

  /** Writes the database anew from what is still open, where its files were removed or replaced. */
  restore(): void {
    prepareStateDir(this.#state_dir);
    const path = databasePath(this.#state_dir);
    const next = `${path}.new`;
    rmSync(next, { force: true });
    this.#db.prepare('VACUUM INTO ?').run(next);
    syncPath(next);
    this.#lock.close();
    this.#lock = lockStateDir(this.#state_dir);
    // Before closing, which removes the log by its name, whoever put it there.
    if (identityOf(path)) moveAside(this.#state_dir);
    this.#db.close();
    renameSync(next, path);
    syncPath(this.#state_dir);
    this.open();
  }

  /** Puts a damaged database aside and closes it; returns where it is. `open` makes a new, empty one. */
  setAside(): string {
    this.#set_aside = moveAside(this.#state_dir);
    this.#db.close();
    return this.#set_aside;
  }

  /** Opens the database where it is closed. */
  open(): void {
    if (this.#db.open) return;
    this.#db = openDatabase(this.#state_dir);
    this.#identities = this.#names.map(identityOf);
  }

  close(): void {
    this.#db.close();
    this.high_water.close();
    this.#lock.close();
  }
}
