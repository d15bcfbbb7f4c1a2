import { readFileSync, readlinkSync } from 'node:fs';
import { kernelRandom } from '../../base/entropy.ts';

/** A unique name for this replica: machine and PID namespace, pid, start time of the process, and a random part. */
export function replicaName(): string {
  const random = kernelRandom(4).toString('hex');
  return [machine(), String(process.pid), startOf(process.pid) ?? '0', random].join('/');
}

/**
 * Whether the replica of that name has certainly ended. Only replicas in this machine's PID namespace can be checked;
 * for others, and for processes that `/proc` hides, only the end of their lease tells.
 */
export function hasEnded(replica: string): boolean {
  const [where, pid = '', started] = replica.split('/');
  if (where !== machine()) return false;
  const seen = startOf(Number(pid));
  if (seen !== null) return seen !== started;
  return !isThere(Number(pid));
}

function machine(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}:${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`;
  } catch {
    return 'unknown';
  }
}

/** Start time of a process in kernel ticks; `ended` for a zombie, null if it is not visible. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? 'ended' : (fields[18] ?? null);
  } catch {
    return null;
  }
}

/** Whether a process exists, including one of another user that `/proc` does not show. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
