import { readdir, readlink } from 'node:fs/promises';
import type { ProcStat } from './proc.ts';

/** The process table that a machine boots with, as /proc/self/ns/pid names it: PROC_PID_INIT_INO. */
const TABLE_OF_THE_MACHINE = 'pid:[4026531836]';

/**
 * Whether the daemon has a process table for itself and its sandbox: not the machine's, and at the start with nobody
 * in it but the daemon and, where that is another, the first process. Everybody who comes later belongs to the sandbox
 * then, whatever session, parent and environment it has. False where it cannot be known.
 */
export async function ownsTable(): Promise<boolean> {
  try {
    const [table, self, names] = await Promise.all([
      readlink('/proc/self/ns/pid'),
      readlink('/proc/self'),
      readdir('/proc'),
    ]);
    const others = names.filter((name) => /^\d+$/.test(name) && name !== '1' && name !== self);
    return table !== TABLE_OF_THE_MACHINE && self === String(process.pid) && others.length === 0;
  } catch {
    return false;
  }
}

/**
 * The processes of such a table that are the sandbox's: not the first one, the daemon and what that runs for itself,
 * nor who came in from outside, as `docker exec` does, with what that started.
 */
export function ofSandbox(stats: ReadonlyMap<number, ProcStat>): ProcStat[] {
  const daemon = stats.get(process.pid);
  if (!daemon) return [];
  return [...stats.values()].filter((stat) => {
    if (stat.pid <= 1 || stat.pid === daemon.pid || stat.state === 'Z' || stat.state === 'X') return false;
    const is_helper = stat.parent === daemon.pid && stat.session === daemon.session;
    return !is_helper && !isFromOutside(stat, stats);
  });
}

/** A parent in another table is shown as 0; an orphan's is the first process. */
function isFromOutside(stat: ProcStat, stats: ReadonlyMap<number, ProcStat>): boolean {
  let first = stat;
  for (let up = stats.get(stat.parent); up; up = stats.get(up.parent)) first = up;
  return first.parent === 0 && first.pid !== 1;
}
