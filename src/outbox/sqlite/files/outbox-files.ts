import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import type { Clock } from '../../../base/clock.ts';
import { goOnFrom } from '../rows/outbox-row.ts';
import { DamagedOutbox } from '../salvage/damaged-outbox.ts';
import { beginning, expectedPending } from '../salvage/salvage.ts';
import { troubleOf } from '../store-errors.ts';
import { databasePath, hasLostHeader, openOutboxDatabase } from './database-file.ts';
import { HighWater } from './high-water.ts';
import { type LeftFiles, removeMoved } from './left-outbox.ts';
import { copyInto, finishRestoring, replaceWith } from './restored-files.ts';
import {
  copyAside,
  finishSettingAside,
  markSalvaged,
  setAsideDatabase,
  setAsidePath,
  unsalvaged,
} from './set-aside.ts';
import { prepareStateDir } from './state-files.ts';
import { type FileIdentity, identityOf, isSameFile, type StateLock } from './state-lock.ts';

/**
 * The outbox's files, in a state directory that this process holds: the database and the mark beside it. The database
 * can be repaired while the daemon runs: it is rewritten if its files were removed, and set aside if it is damaged. A
 * database that was set aside stays `unsalvaged`, even across restarts, until its records are taken over.
 */
export class OutboxFiles {
  readonly #state_dir: string;
  readonly #lock: StateLock;
  #db: Database;
  #unsalvaged: number[];
  readonly #damaged = new Map<number, DamagedOutbox>();
  #set_aside: string | null = null;
  /** The names that a restart opens, and the files that they led to when they were opened. */
  readonly #names: string[];
  #identities: (FileIdentity | undefined)[] = [];
  readonly high_water: HighWater;

  /** Opens what the state directory holds. Throws StartError, or what SQLite says. */
  constructor(state_dir: string, clock: Clock, lock: StateLock) {
    this.#state_dir = state_dir;
    this.#lock = lock;
    prepareStateDir(state_dir);
    removeMoved(state_dir);
    finishRestoring(state_dir);
    finishSettingAside(state_dir);
    const path = databasePath(state_dir);
    this.#names = [path, `${path}-wal`];
    if (hasLostHeader(path)) setAsideDatabase(state_dir);
    this.high_water = new HighWater(join(state_dir, 'high-water'), clock);
    this.#db = this.#openSound();
    try {
      this.#unsalvaged = this.#withoutSalvaged();
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  /** The open database; another one after `open`, `restore` and `keepAsFound`. */
  get db(): Database {
    return this.#db;
  }

  /** Path of a damaged outbox that was set aside, or null. */
  get set_aside(): string | null {
    return this.#set_aside;
  }

  /** Whether damaged outboxes wait to be salvaged. */
  get is_salvage_due(): boolean {
    return this.#unsalvaged.length > 0;
  }

  /** Makes a new database continue where those that were set aside ended; returns how many pending records they had. */
  continueDamaged(): number {
    const damaged = this.damaged();
    const mark = this.high_water.read();
    const { sandbox_id } = this.#db.prepare('SELECT sandbox_id FROM outbox').get() as { sandbox_id: unknown };
    if (sandbox_id === null) goOnFrom(this.#db, beginning(damaged, mark));
    return expectedPending(damaged, mark);
  }

  /** What can be read of the outboxes that wait to be taken over, newest first. */
  damaged(): DamagedOutbox[] {
    for (const number of this.#unsalvaged) {
      if (this.#damaged.has(number)) continue;
      const damaged = DamagedOutbox.open(setAsidePath(this.#state_dir, 'unsalvaged', number));
      if (damaged) this.#damaged.set(number, damaged);
    }
    return this.#unsalvaged.flatMap((number) => this.#damaged.get(number) ?? []);
  }

  /** Notes in the database that they are salvaged. Call it in the transaction of the salvage. */
  noteSalvaged(): void {
    this.#db.pragma(`application_id = ${Math.max(...this.#unsalvaged)}`);
  }

  /** Gives them their final names after that commit; returns the path of the newest. */
  salvaged(): string {
    const [newest = 0] = this.#unsalvaged;
    for (const number of this.#unsalvaged.splice(0)) this.#keep(number);
    this.#set_aside = setAsidePath(this.#state_dir, 'damaged', newest);
    return this.#set_aside;
  }

  #keep(number: number): void {
    const damaged = this.#damaged.get(number);
    this.#damaged.delete(number);
    try {
      // Before it is closed: SQLite writes nothing into a database that has another name by then.
      const path = markSalvaged(this.#state_dir, number);
      damaged?.close(path);
    } catch {
      // The next start repeats it: the number is committed.
      damaged?.close(setAsidePath(this.#state_dir, 'unsalvaged', number));
    }
  }

  /** Whether the names still lead to the open files: anything written to unlinked files is lost with this process. */
  areInPlace(): boolean {
    return this.#lock.isInPlace() && this.#areDatabaseFilesInPlace();
  }

  #areDatabaseFilesInPlace(): boolean {
    return this.#names.every((path, i) => isSameFile(identityOf(path), this.#identities[i]));
  }

  /** Keeps a copy of the files as they were found, where they are whole but not all that they were. */
  keepAsFound(): void {
    if (this.#set_aside) return;
    this.#set_aside = copyAside(this.#state_dir);
    // The copy was read through descriptors of its own: with their end SQLite's locks on the file ended too.
    this.#db.close();
    this.open();
  }

  /** Writes a copy of the database, as of the last commit, to a path; what is there is replaced. */
  copyTo(path: string): void {
    copyInto(this.#db, path);
  }

  /**
   * Puts the lock and the database back under their names, from what is still open. Throws StartError where another
   * daemon has the state directory by now.
   */
  restore(): void {
    if (!this.#lock.isInPlace()) this.#lock.take();
    if (this.#areDatabaseFilesInPlace()) return;
    const is_foreign = (path: string, i: number) => {
      const found = identityOf(path);
      return found !== undefined && !isSameFile(found, this.#identities[i]);
    };
    replaceWith(this.#db, this.#state_dir, this.#names.some(is_foreign));
    this.open();
  }

  /** Sets a damaged database aside and closes it. `open` makes a new, empty one. */
  setAside(): void {
    this.#unsalvaged.unshift(setAsideDatabase(this.#state_dir));
    this.#db.close();
  }

  /** Opens the database where it is closed. */
  open(): void {
    if (this.#db.open) return;
    finishRestoring(this.#state_dir);
    this.#db = this.#openSound();
    this.#unsalvaged = this.#withoutSalvaged();
  }

  /** A database that is damaged is set aside, and a new one opened. */
  #openSound(): Database {
    const db = this.#openOrSetAside();
    this.#identities = this.#names.map(identityOf);
    return db;
  }

  #openOrSetAside(): Database {
    try {
      return openOutboxDatabase(this.#state_dir);
    } catch (error) {
      if (troubleOf(error) !== 'damage') throw error;
      setAsideDatabase(this.#state_dir);
      return openOutboxDatabase(this.#state_dir);
    }
  }

  /** Outboxes that still have to be taken over; those whose salvage was committed get their final names. */
  #withoutSalvaged(): number[] {
    const salvaged = this.#db.pragma('application_id', { simple: true }) as number;
    return unsalvaged(this.#state_dir).filter((number) => {
      if (number <= salvaged) this.#keep(number);
      return number > salvaged;
    });
  }

  /** Stops writing and leaves everything open, for a `LeftOutbox`; null where no database is open. */
  leave(): LeftFiles | null {
    this.high_water.leave();
    if (this.#db.open) this.#db.pragma('shrink_memory');
    const [database, log = null] = this.#identities;
    return this.#db.open && database ? { database, log } : null;
  }

  /** Closes everything. Idempotent. */
  close(): void {
    for (const [number, damaged] of this.#damaged) {
      damaged.close(setAsidePath(this.#state_dir, 'unsalvaged', number));
    }
    this.#damaged.clear();
    if (this.#db.open) this.#db.close();
    this.high_water.close();
  }
}
