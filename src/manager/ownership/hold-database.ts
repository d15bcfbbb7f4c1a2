import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { sleep, workingClock } from '../../base/clock.ts';
import { FileLock, FileLockedError } from '../../base/file-lock.ts';
import { StartError } from '../../contract/errors.ts';
import type { DatabaseHold, HoldParts } from './database-hold.ts';
import { PostgresHold } from './postgres-hold.ts';

/** How long a start waits for a manager that is just ending. */
const PATIENCE_MS = 2_000;
const POLL_MS = 100;

/**
 * Holds a database: with a lock of the kernel beside a SQLite file, with one of a session on PostgreSQL; either ends with
 * this process. Throws StartError where another manager holds it. Source: contract section 7, `--replicas`.
 */
export async function holdDatabase(parts: HoldParts): Promise<DatabaseHold> {
  const until_ms = workingClock.monotonicMs() + PATIENCE_MS;
  for (;;) {
    const hold = await tryHold(parts);
    if (typeof hold !== 'string') return hold;
    if (workingClock.monotonicMs() > until_ms) throw new StartError(refusal(parts, hold), 2);
    await sleep(workingClock, POLL_MS);
  }
}

/** Gives who holds it where that is somebody else. */
async function tryHold(parts: HoldParts): Promise<DatabaseHold | string> {
  const { url } = parts;
  return url.startsWith('sqlite:') ? lockFile(url.slice('sqlite:'.length)) : PostgresHold.take(parts);
}

function lockFile(path: string): DatabaseHold | string {
  try {
    // Two names of one file are one database.
    const lock = new FileLock(`${existsSync(path) ? realpathSync(path) : resolve(path)}-lock`);
    return { displaced: new Promise(() => {}), release: async () => lock.release() };
  } catch (error) {
    if (error instanceof FileLockedError) return error.holder;
    throw new StartError(`--database ${path} cannot be opened: ${(error as Error).message}`, 1, error);
  }
}

function refusal({ url, is_alone }: HoldParts, holder: string): string {
  const name = url.startsWith('sqlite:') ? url : 'of this URL';
  if (is_alone)
    return `--database ${name} is held by another sandbox-manager${holder}: --replicas 1 is for one alone`;
  return `--database ${name} is held by a sandbox-manager with --replicas 1${holder}: give every one the same number`;
}
