import { chmodSync, constants, copyFileSync, lstatSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { syncNow } from '../../../base/durable-file.ts';
import { DATABASE, DATABASE_FILES, databasePath } from './database-file.ts';

/**
 * Damaged outboxes beside the one in use. `outbox-unsalvaged-<n>.db` was set aside and still has to be taken over; it
 * becomes `outbox-damaged-<n>.db` when that is committed, which the new outbox holds as its `application_id`: the
 * highest number it has taken over. A crash at any instruction leaves one of the two, and no record is taken over
 * twice.
 */
const SET_ASIDE = /^outbox-(unsalvaged|damaged)-(\d{1,9})\.db(-wal|-shm|-journal)?$/;

type Kind = 'unsalvaged' | 'damaged';

/** The path of a damaged outbox's database. */
export function setAsidePath(state_dir: string, kind: Kind, number: number): string {
  return join(state_dir, `outbox-${kind}-${number}.db`);
}

/** Numbers of the outboxes that were set aside and not yet taken over, newest first. */
export function unsalvaged(state_dir: string): number[] {
  const numbers = found(state_dir).filter(({ kind, path }) => kind === 'unsalvaged' && isPlain(path));
  return [...new Set(numbers.map(({ number }) => number))].sort((a, b) => b - a);
}

/** Renames the database's files so that they can be salvaged; returns their number. */
export function setAsideDatabase(state_dir: string): number {
  const number = freeNumber(state_dir);
  put(state_dir, setAsidePath(state_dir, 'unsalvaged', number), renameSync);
  return number;
}

/** Completes a `setAsideDatabase` that a crash cut off between two renames. */
export function finishSettingAside(state_dir: string): void {
  const [newest] = unsalvaged(state_dir);
  if (newest === undefined || exists(databasePath(state_dir))) return;
  const path = setAsidePath(state_dir, 'unsalvaged', newest);
  if (exists(`${databasePath(state_dir)}-wal`) && exists(path) && !exists(`${path}-wal`)) {
    put(state_dir, path, renameSync);
  }
}

/** Gives an outbox that was taken over its final name, which is returned. May be repeated. */
export function markSalvaged(state_dir: string, number: number): string {
  const path = setAsidePath(state_dir, 'damaged', number);
  const from = setAsidePath(state_dir, 'unsalvaged', number);
  for (const file of DATABASE_FILES) {
    const suffix = file.slice(DATABASE.length);
    if (exists(from + suffix)) renameSync(from + suffix, path + suffix);
  }
  syncNow(state_dir);
  return path;
}

/** Sets aside files that do not belong to this outbox and hold nothing to take over; returns the path of the first. */
export function moveAside(state_dir: string): string {
  const path = setAsidePath(state_dir, 'damaged', freeNumber(state_dir));
  put(state_dir, path, renameSync);
  return path;
}

/** Copies the database's files aside, as they are. A log that is larger than any of the outbox's own is left out. */
export function copyAside(state_dir: string): string {
  const path = setAsidePath(state_dir, 'damaged', freeNumber(state_dir));
  put(state_dir, path, (from, to) => {
    if (lstatSync(from).size > COPY_MAX_BYTES) return;
    copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    chmodSync(to, 0o600);
    syncNow(to);
  });
  return path;
}

/** A sparse file of any length takes no room until it is copied. */
const COPY_MAX_BYTES = 16 * 1024 * 1024 * 1024;

function put(state_dir: string, target: string, move: (from: string, to: string) => void): void {
  for (const file of DATABASE_FILES) {
    const path = join(state_dir, file);
    if (exists(path)) move(path, target + file.slice(DATABASE.length));
  }
  syncNow(state_dir);
}

/** Above all others, so that the newest has the highest; planted names can only use up the numbers above. */
function freeNumber(state_dir: string): number {
  const taken = new Set(found(state_dir).map(({ number }) => number));
  let free = Math.max(0, ...[...taken].filter((number) => number < NUMBERS)) + 1;
  while (taken.has(free)) free += 1;
  return free;
}

const NUMBERS = 100_000_000;

function found(state_dir: string): { kind: string; number: number; path: string }[] {
  return readdirSync(state_dir).flatMap((name) => {
    const [, kind, number] = SET_ASIDE.exec(name) ?? [];
    return kind && number ? [{ kind, number: Number(number), path: join(state_dir, name) }] : [];
  });
}

/** A link, a folder or a pipe under such a name is nobody's outbox. */
function isPlain(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && stat.nlink === 1;
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
