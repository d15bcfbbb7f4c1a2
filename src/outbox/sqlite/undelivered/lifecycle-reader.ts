import { lstatSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { databasePath, hasLostHeader } from '../files/database-file.ts';
import { setAsidePath, unsalvaged } from '../files/set-aside.ts';
import { DamagedOutbox } from '../salvage/damaged-outbox.ts';
import { salvagedRecord } from '../salvage/salvaged-rows.ts';
import { troubleOf } from '../store-errors.ts';
import { type FoundLifecycle, lifecycleEvent } from './lifecycle-event.ts';
import { trustedOutboxRow } from './trusted-outbox.ts';
import type { HandOverSource, LifecycleEvent } from './undelivered-record.ts';

/** More than a daemon keeps; what others wrote beyond it is not read. */
const EVENTS_MAX = 2_000;
const TEXT_MAX_BYTES = 64 * 1024;

/**
 * The events of a sandbox's own life in a stopped daemon's outbox after a sequence, in order, whatever became of their
 * delivery; past whatever is damaged. Throws what may pass, such as a disk in trouble. Call it once file operations that
 * the daemon may have begun are completed.
 */
export function readLifecycleEvents(source: HandOverSource, after: number): LifecycleEvent[] {
  const { state_dir } = source;
  const found = new Map<string, LifecycleEvent>();
  const take = (row: FoundLifecycle) => {
    const event = lifecycleEvent(row, source);
    if (event && event.sequence > after) found.set(event.event_id, event);
  };
  const path = databasePath(state_dir);
  const is_there = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  const damaged = unsalvaged(state_dir).map((number) => setAsidePath(state_dir, 'unsalvaged', number));
  if (is_there && (hasLostHeader(path) || !isReadWhole(path, source, after, take))) damaged.unshift(path);
  for (const each of damaged) readDamaged(each, source, take);
  return [...found.values()].sort((a, b) => a.sequence - b.sequence);
}

/** False at the first damage. */
function isReadWhole(
  path: string,
  { sandbox_id }: HandOverSource,
  after: number,
  take: (row: FoundLifecycle) => void,
): boolean {
  // Never this outbox's own; one that names another file could have that removed.
  rmSync(`${path}-journal`, { force: true });
  const db = new Database(path, { timeout: 0, fileMustExist: true });
  try {
    trustedOutboxRow(db);
    // Not by an index, which may be what is damaged.
    const rows = db.prepare(`SELECT event_id, event_type, sandbox_id, sequence, headers, body, checksum,
      mac, created_at_ms FROM records NOT INDEXED
      WHERE event_type GLOB 'sandbox.*' AND sandbox_id = ? AND sequence > ?
        AND octet_length(body) + octet_length(headers) < ? ORDER BY id LIMIT ?`);
    const given = [sandbox_id, after, TEXT_MAX_BYTES, EVENTS_MAX];
    for (const row of rows.iterate(...given)) take(row as FoundLifecycle);
    return true;
  } catch (error) {
    if (troubleOf(error) === 'away' || (error as NodeJS.ErrnoException).code === 'SQLITE_BUSY') throw error;
    return false;
  } finally {
    db.close();
  }
}

function readDamaged(
  path: string,
  { sandbox_id }: HandOverSource,
  take: (row: FoundLifecycle) => void,
): void {
  const outbox = DamagedOutbox.open(path);
  if (!outbox) return;
  try {
    let left = EVENTS_MAX;
    for (const { record: row } of outbox.records()) {
      const record = salvagedRecord(row);
      if (record?.sandbox_id !== sandbox_id || !record.event_type.startsWith('sandbox.')) continue;
      take(record);
      left -= 1;
      if (left === 0) return;
    }
  } finally {
    outbox.close(path);
  }
}
