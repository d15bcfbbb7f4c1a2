import { chmodSync, closeSync, lstatSync, openSync, readSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { makeFolderSync } from '../base/folder.ts';
import { StartError } from '../contract/errors.ts';
import {
  copyAside,
  DATABASE_FILES,
  hasLostItsHeader,
  isDamage,
  moveAside,
  openDatabase,
  removeDatabase,
  touch,
} from './database-file.ts';

/** Where SQLite keeps `user_version` in its header: here the owner's pid, for the message of whoever comes second. */
const OWNER_PID_OFFSET = 60;

/**
 * Makes the state directory, or refuses one that somebody else could have prepared.
 * Source: contract section 5 and the rule that planted links and foreign owners are refused.
 */
export function prepareStateDir(state_dir: string): void {
  try {
    makeFolderSync(state_dir);
  } catch (error) {
    throw new StartError(`state directory ${state_dir}: ${(error as Error).message}`);
  }
  const stat = lstatSync(state_dir);
  if (!stat.isDirectory())
    throw new StartError(`state directory ${state_dir} is not a directory (links are refused)`);
  if (stat.uid !== process.geteuid?.())
    throw new StartError(`state directory ${state_dir} belongs to user ${stat.uid}`);
  if (stat.mode & 0o022) throw new StartError(`state directory ${state_dir} can be written by others`);
  if ((stat.mode & 0o777) !== 0o700) chmodSync(state_dir, 0o700);
  for (const name of [...DATABASE_FILES, 'lock', 'control-token', 'high-water'])
    checkFile(join(state_dir, name));
}

function checkFile(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return;
  if (!stat.isFile() || stat.nlink > 1)
    throw new StartError(`${path} is not a plain file of its own (links are refused)`);
  if (stat.uid !== process.geteuid?.()) throw new StartError(`${path} belongs to user ${stat.uid}`);
  if (stat.mode & 0o077) chmodSync(path, 0o600);
}

/**
 * Takes the state directory for this process until it ends, however it ends: the lock is the kernel's.
 * Throws StartError where another daemon has it. Source: contract section 3, One owner.
 */
export function lockStateDir(state_dir: string): Database.Database {
  const path = join(state_dir, 'lock');
  touch(path);
  try {
    return takeLock(path);
  } catch (error) {
    // It holds nothing but the lock, and who gets as far as reading it does not find it held.
    if (isDamage(error)) {
      truncateSync(path);
      return takeLock(path);
    }
    if (!/locked|busy/i.test((error as Error).message)) throw error;
    throw new StartError(`state directory ${state_dir} is in use by another sandboxd${ownerPid(path)}`);
  }
}

function takeLock(path: string): Database.Database {
  const lock = new Database(path, { timeout: 0 });
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

/**
 * Opens the outbox. A damaged one is kept as it was found, beside the one that is gone on with, and never deleted.
 * Source: contract section 3, Disk trouble.
 */
export function openOutbox(state_dir: string): { db: Database.Database; set_aside: string | null } {
  // Without its header SQLite takes the file for a new one and drops the log; with it, the log may still heal it.
  const set_aside = hasLostItsHeader(state_dir) ? copyAside(state_dir) : null;
  try {
    return { db: openDatabase(state_dir), set_aside };
  } catch (error) {
    if (!isDamage(error)) throw error;
    if (set_aside) removeDatabase(state_dir);
    return { set_aside: set_aside ?? moveAside(state_dir), db: openDatabase(state_dir) };
  }
}
