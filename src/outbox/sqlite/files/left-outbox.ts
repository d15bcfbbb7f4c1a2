import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { syncNow } from '../../../base/durable-file.ts';
import { damage } from '../store-errors.ts';
import { DATABASE_FILES, databasePath } from './database-file.ts';
import { moveAside } from './set-aside.ts';
import { prepareStateDir } from './state-files.ts';
import { type FileIdentity, identityOf, isSameFile } from './state-lock.ts';

/** The copy that takes the place of a database that another thread has left open. */
const MOVED = 'outbox-moved.db';

const NEW_FILE = { flag: 'wx', mode: 0o600 };

/** The files of an outbox that another thread of this process has open and does not use any more. */
export interface LeftFiles {
  database: FileIdentity;
  /** Null where there was no log. */
  log: FileIdentity | null;
}

/**
 * An outbox that the main thread has left open: closing it would write and sync, and a disk that begins to hang just then
 * would stop the API. Its lock stays with that connection, so this thread takes a copy, which gets the name. Until then
 * the old files are complete; a log of theirs that a crash leaves beside the copy changes nothing in it.
 */
export class LeftOutbox {
  readonly #state_dir: string;
  readonly #left: LeftFiles;
  #copy: FileIdentity | null = null;
  #is_taken = false;
  #was_gone = false;

  constructor(state_dir: string, left: LeftFiles) {
    this.#state_dir = state_dir;
    this.#left = left;
  }

  /** Whether the files were removed or replaced before they were taken over. */
  get was_gone(): boolean {
    return this.#was_gone;
  }

  /** Takes it over. Throws the system's error or SQLite's, and may then be repeated. */
  take(): void {
    if (this.#is_taken) return;
    const path = databasePath(this.#state_dir);
    if (this.#copy === null || !isSameFile(identityOf(path), this.#copy)) this.#putCopy(path);
    syncNow(this.#state_dir);
    // Not before the copy has its name, for good: without its log the old database is not complete.
    for (const file of DATABASE_FILES.slice(1)) {
      rmSync(join(this.#state_dir, file), { force: true, recursive: true });
    }
    syncNow(this.#state_dir);
    this.#is_taken = true;
  }

  #putCopy(path: string): void {
    prepareStateDir(this.#state_dir);
    const moved = join(this.#state_dir, MOVED);
    removeMoved(this.#state_dir);
    writeFileSync(moved, contentOf(path, this.#left.database), NEW_FILE);
    if (this.#left.log) writeFileSync(`${moved}-wal`, contentOf(`${path}-wal`, this.#left.log), NEW_FILE);
    writeBack(moved);
    const found = identityOf(path);
    if (!isSameFile(found, this.#left.database)) {
      this.#was_gone = true;
      if (found) moveAside(this.#state_dir);
    }
    this.#copy = identityOf(moved) ?? null;
    renameSync(moved, path);
  }
}

/** Removes a copy that a crash has left unfinished. */
export function removeMoved(state_dir: string): void {
  for (const end of ['', '-wal', '-journal']) {
    rmSync(join(state_dir, MOVED + end), { force: true, recursive: true });
  }
}

/** Writes the copy's log into it, and leaves it whole, synced and alone. */
function writeBack(moved: string): void {
  const copy = new Sqlite(moved, { timeout: 0, fileMustExist: true });
  try {
    // In memory: the log's index, too, is written nowhere.
    copy.pragma('locking_mode = EXCLUSIVE');
    const [result] = copy.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
    const check = copy.pragma('quick_check(1)', { simple: true });
    if (result?.busy !== 0 || check !== 'ok') throw damage(`the outbox cannot be moved: ${check}`);
  } finally {
    copy.close();
  }
  syncNow(moved);
}

/** The bytes of an open file: by its name, or where that leads elsewhere by now, by this process's descriptor of it. */
function contentOf(path: string, identity: FileIdentity): Buffer {
  return contentAt(path, identity, constants.O_NOFOLLOW) ?? contentOfDescriptor(identity);
}

function contentOfDescriptor(identity: FileIdentity): Buffer {
  for (const name of readdirSync('/proc/self/fd')) {
    if (!isDescriptorOf(Number(name), identity)) continue;
    const content = contentAt(`/proc/self/fd/${name}`, identity, 0);
    if (content) return content;
  }
  throw new Error('the outbox is not open any more');
}

function isDescriptorOf(descriptor: number, identity: FileIdentity): boolean {
  try {
    return isSameFile(fstatSync(descriptor), identity);
  } catch {
    return false; // closed meanwhile
  }
}

/** Null where the path does not lead to that file. */
function contentAt(path: string, identity: FileIdentity, flag: number): Buffer | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flag);
  } catch (error) {
    if (/^(ENOENT|ELOOP|ENXIO|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
  try {
    return isSameFile(fstatSync(file), identity) ? readFileSync(file) : null;
  } finally {
    closeSync(file);
  }
}
