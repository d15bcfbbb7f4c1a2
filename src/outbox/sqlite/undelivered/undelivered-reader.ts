import { Buffer } from 'node:buffer';
import { closeSync, existsSync, lstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { ApiError } from '../../../contract/errors.ts';
import { DATABASE_FILES } from '../files/database-file.ts';
import { HighWater, type Mark } from '../files/high-water.ts';
import { finishRestoring, RESTORED } from '../files/restored-files.ts';
import { finishSettingAside, setAsidePath, unsalvaged } from '../files/set-aside.ts';
import { DirectoryTakenError, StateLock } from '../files/state-lock.ts';
import { troubleOf } from '../store-errors.ts';
import { readLifecycleEvents } from './lifecycle-reader.ts';
import type { HandOverSource, UndeliveredPage } from './undelivered-record.ts';
import { UndeliveredRecords } from './undelivered-records.ts';

/**
 * The files of a state directory that a handover reads, besides databases that were set aside; nothing else is trusted.
 */
export const HANDED_OVER_FILES = [...DATABASE_FILES, RESTORED, 'high-water'];

/** A mark is two numbers and an id. */
const MARK_MAX_BYTES = 1024;
/** Read at a time to find out whether a file can be read. */
const READ_BYTES = 1024 * 1024;

/**
 * Reads every record that a stopped daemon had not delivered, as stored, including records in databases that the daemon
 * had set aside and not yet taken over. The records are not changed, so reading again gives the same result. Processes
 * of the sandbox may have tampered with the outbox: no link, schema or row of theirs gets past this function. Throws
 * `conflict` while a daemon is still using it, and temporary errors such as a failing disk or too many open files;
 * damage and tampering end in `trouble`. Source: contract section 7, "A deletion loses no event".
 */
export function* readUndelivered(source: HandOverSource, clock: Clock): Generator<UndeliveredPage> {
  const { state_dir } = source;
  if (!existsSync(state_dir)) return;
  const mark = readMark(source, clock);
  const records = new UndeliveredRecords(source, clock, mark);
  let lock: StateLock | null = null;
  try {
    checkFiles(state_dir);
    if (lstatSync(join(state_dir, 'lock'), { throwIfNoEntry: false })) lock = new StateLock(state_dir);
    // Completes file operations that the daemon may have begun.
    finishRestoring(state_dir);
    finishSettingAside(state_dir);
    const lifecycle =
      source.lifecycle_after === undefined ? [] : readLifecycleEvents(source, source.lifecycle_after);
    if (lifecycle.length > 0) yield { records: [], lifecycle, lost_records: 0, set_aside: 0, trouble: null };
    for (const page of records.pages()) {
      if (page.trouble !== null) checkReadable(filesIn(state_dir));
      yield page;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (error instanceof DirectoryTakenError || code === 'SQLITE_BUSY') {
      throw new ApiError('conflict', 'A daemon is still using the outbox.');
    }
    if (troubleOf(error) === 'away') throw error;
    checkReadable(filesIn(state_dir));
    const lost_records = Math.max(0, (mark?.pending ?? 0) - records.read);
    yield { records: [], lost_records, set_aside: 0, trouble: message };
  } finally {
    lock?.release();
  }
}

/** Throws where something else is in a file's place: SQLite would follow a link, and write to what it leads to. */
function checkFiles(state_dir: string): void {
  for (const name of HANDED_OVER_FILES) {
    const stat = lstatSync(join(state_dir, name), { throwIfNoEntry: false });
    if (stat && (!stat.isFile() || stat.nlink > 1))
      throw new Error(`${name} is not a regular file with one link`);
  }
}

function filesIn(state_dir: string): string[] {
  const set_aside = unsalvaged(state_dir).map((number) => setAsidePath(state_dir, 'unsalvaged', number));
  return [...DATABASE_FILES.map((name) => join(state_dir, name)), ...set_aside];
}

/** Throws where the disk cannot read the files: SQLite takes some of its errors for damage. */
function checkReadable(paths: string[]): void {
  const buffer = Buffer.alloc(READ_BYTES);
  for (const path of paths) {
    if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) continue;
    const file = openSync(path, 'r');
    try {
      for (let at = 0, read = 1; read > 0; at += read) read = readSync(file, buffer, 0, READ_BYTES, at);
    } finally {
      closeSync(file);
    }
  }
}

/** What the outbox held last by the mark beside it, where that is this sandbox's. */
function readMark({ state_dir, sandbox_id }: HandOverSource, clock: Clock): Mark | null {
  const path = join(state_dir, 'high-water');
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile() || stat.size > MARK_MAX_BYTES) return null;
  const mark = new HighWater(path, clock).read();
  return mark?.sandbox_id === sandbox_id ? mark : null;
}
