import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { pause } from '../pause.ts';
import { error, type Finding, ok, warning } from './finding.ts';

/** So many directories are counted at most. */
const DIRECTORIES_MAX = 1_000_000;
const ORPHAN_S = 0.1;
const REAP_MS = 2_000;
/** Before this program was written: certificates of today are not valid yet. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);

/** Whether the kernel grants a watch for each directory of the watched tree. */
export async function checkInotify(watch_dir: string | null): Promise<Finding[]> {
  const name = 'inotify';
  if (watch_dir === null) return [ok(name, 'nothing is watched')];
  const limit = Number(read('/proc/sys/fs/inotify/max_user_watches') || Number.NaN);
  if (Number.isNaN(limit)) return [warning(name, 'the limit on watches cannot be read')];
  if (!existsSync(watch_dir))
    return [ok(name, `${watch_dir} is not there yet; ${limit} watches are granted`)];
  const needed = await countDirectories(watch_dir);
  const told = `${needed} directories in ${watch_dir}, ${limit} watches are granted (fs.inotify.max_user_watches)`;
  return [needed > limit ? error(name, told) : needed > limit / 2 ? warning(name, told) : ok(name, told)];
}

async function countDirectories(root: string): Promise<number> {
  const waiting = [root];
  let count = 0;
  for (let folder = waiting.pop(); folder !== undefined && count < DIRECTORIES_MAX; folder = waiting.pop()) {
    count += 1;
    const entries = await opendir(folder).catch(() => null); // gone meanwhile, or not ours to read
    for await (const entry of entries ?? []) if (entry.isDirectory()) waiting.push(join(folder, entry.name));
  }
  return count;
}

/** Whether somebody takes care of processes whose parent has ended: tried with one. */
export async function checkReaper(clock: Clock): Promise<Finding[]> {
  const name = 'init';
  const init = read('/proc/1/comm').trim() || 'unknown';
  const orphan = await orphaned();
  if (orphan === null)
    return [warning(name, `PID 1 is ${init}; /bin/sh is missing to try whether it reaps orphans`)];
  const end_ms = clock.monotonicMs() + REAP_MS;
  while (existsSync(`/proc/${orphan}`) && clock.monotonicMs() < end_ms) await pause(50);
  if (!existsSync(`/proc/${orphan}`)) return [ok(name, `PID 1 is ${init}, orphaned processes are reaped`)];
  return [
    warning(name, `PID 1 is ${init} and does not reap orphaned processes: put an init such as tini in front`),
  ];
}

/** The pid of a process whose parent has ended. */
async function orphaned(): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', `sleep ${ORPHAN_S} >/dev/null & echo $!`]);
    return stdout.trim();
  } catch {
    return null;
  }
}

/** Whether the wall clock is one that certificates can be checked with. */
export async function checkClock(clock: Clock): Promise<Finding[]> {
  const now = new Date(clock.wallMs()).toISOString();
  if (clock.wallMs() < EARLIEST_MS)
    return [error('clock', `it is set to ${now}: certificates will not be valid yet`)];
  return [ok('clock', `it is set to ${now}`)];
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
