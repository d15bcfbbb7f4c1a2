import { readlinkSync } from 'node:fs';
import { isZombie, type ProcStat, readPidNamespace, readPids } from '../../base/linux/procfs.ts';

/** The process table that a machine boots with, as /proc/self/ns/pid names it: PROC_PID_INIT_INO. */
const TABLE_OF_THE_MACHINE = 'pid:[4026531836]';

/**
 * Whether the daemon and its sandbox have a process table (a pid namespace) of their own: not the machine's, and at the
 * start with no process in it but the daemon and the init process. Every later process then belongs to the sandbox,
 * whatever its session, parent and environment. False if that cannot be determined.
 */
export async function ownsTable(): Promise<boolean> {
  try {
    const self = Number(readlinkSync('/proc/self'));
    const others = (await readPids()).filter((pid) => pid !== 1 && pid !== self);
    return readPidNamespace() !== TABLE_OF_THE_MACHINE && self === process.pid && others.length === 0;
  } catch {
    return false;
  }
}

/**
 * The processes of such a table that belong to the sandbox: all but the init process, the daemon, the daemon's own
 * helpers, and processes that entered from outside, as with `docker exec`, with their descendants.
 */
export function ofSandbox(stats: ReadonlyMap<number, ProcStat>): ProcStat[] {
  const daemon = stats.get(process.pid);
  if (!daemon) return [];
  return [...stats.values()].filter((stat) => {
    if (stat.pid <= 1 || stat.pid === daemon.pid || isZombie(stat)) return false;
    const is_helper = stat.parent === daemon.pid && stat.session === daemon.session;
    return !is_helper && !isFromOutside(stat, stats);
  });
}

/** A parent in another table is shown as 0; the parent of an orphan is the init process. */
function isFromOutside(stat: ProcStat, stats: ReadonlyMap<number, ProcStat>): boolean {
  let first = stat;
  for (let up = stats.get(stat.parent); up; up = stats.get(up.parent)) first = up;
  return first.parent === 0 && first.pid !== 1;
}
