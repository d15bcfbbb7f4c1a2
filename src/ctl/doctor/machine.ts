import { existsSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { readKernelSetting, readProgramName } from '../../base/linux/procfs.ts';
import { runTool } from '../../base/run-tool.ts';
import { pause } from '../pause.ts';
import { error, type Finding, ok, warning } from './finding.ts';

/** Where the kernel keeps the limits of a user, and of a user namespace: the lower one holds. */
const WATCH_LIMITS = ['fs/inotify/max_user_watches', 'user/max_inotify_watches'];
/** At most this many directories are counted. */
const DIRECTORIES_MAX = 1_000_000;
const ORPHAN_S = 0.1;
const REAP_MS = 2_000;
/** Earlier than this program: a clock set to such a time rejects today's certificates. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);

/** Checks whether the kernel grants a watch for each directory in the watched tree; null means none is watched. */
export async function checkInotify(watch_dir: string | null): Promise<Finding[]> {
  const name = 'inotify';
  if (watch_dir === null) return [ok(name, 'no directory is watched')];
  const limits = WATCH_LIMITS.map((setting) => ({ setting, watches: readLimit(setting) })).filter(
    ({ watches }) => !Number.isNaN(watches),
  );
  const [lowest] = limits.sort((a, b) => a.watches - b.watches);
  if (!lowest) return [warning(name, 'cannot read the limit on watches')];
  const limit = lowest.watches;
  if (!existsSync(watch_dir))
    return [ok(name, `${watch_dir} does not exist yet; ${limit} watches are allowed`)];
  const required = await countDirectories(watch_dir);
  const setting = lowest.setting.replaceAll('/', '.');
  const message = `${required} directories in ${watch_dir}, ${limit} watches are allowed (${setting})`;
  if (required > limit) {
    const remedy = `raise it with sysctl -w ${setting}=${required * 2}, or leave directories out with --watch-ignore`;
    return [error(name, `${message}: changes in the rest are only found by comparison; ${remedy}`)];
  }
  return [required > limit / 2 ? warning(name, message) : ok(name, message)];
}

function readLimit(setting: string): number {
  return Number(readKernelSetting(setting) || Number.NaN);
}

async function countDirectories(root: string): Promise<number> {
  const waiting = [root];
  let count = 0;
  for (let folder = waiting.pop(); folder !== undefined && count < DIRECTORIES_MAX; folder = waiting.pop()) {
    count += 1;
    const entries = await opendir(folder).catch(() => null); // removed meanwhile, or not readable
    for await (const entry of entries ?? []) if (entry.isDirectory()) waiting.push(join(folder, entry.name));
  }
  return count;
}

/** Checks whether orphaned processes are reaped, by orphaning one. */
export async function checkReaper(clock: Clock): Promise<Finding[]> {
  const name = 'init';
  const init = readProgramName(1) || 'unknown';
  const orphan = await orphaned();
  if (orphan === null)
    return [
      warning(name, `PID 1 is ${init}; without /bin/sh it is unknown whether it reaps orphaned processes`),
    ];
  const end_ms = clock.monotonicMs() + REAP_MS;
  while (existsSync(`/proc/${orphan}`) && clock.monotonicMs() < end_ms) await pause(50);
  if (!existsSync(`/proc/${orphan}`)) return [ok(name, `PID 1 is ${init}, orphaned processes are reaped`)];
  return [
    warning(name, `PID 1 is ${init} and does not reap orphaned processes: run an init such as tini as PID 1`),
  ];
}

/** The pid of a process whose parent has ended; null if none could be started. */
async function orphaned(): Promise<string | null> {
  try {
    return (await runTool(['/bin/sh', '-c', `sleep ${ORPHAN_S} >/dev/null 2>&1 & echo $!`])).trim();
  } catch {
    return null;
  }
}

/** Checks whether the wall clock is late enough for certificates to be valid. */
export async function checkClock(clock: Clock): Promise<Finding[]> {
  const now = new Date(clock.wallMs()).toISOString();
  if (clock.wallMs() < EARLIEST_MS) return [error('clock', `set to ${now}: certificates are not valid yet`)];
  return [ok('clock', `set to ${now}`)];
}
