import { kernelRandom } from '../../base/entropy.ts';
import { isZombie, readBootId, readPidNamespace, readStatNow } from '../../base/linux/procfs.ts';

/** A unique name for this replica: machine and PID namespace, pid, start time of the process, and a random part. */
export function replicaName(): string {
  const random = kernelRandom(4).toString('hex');
  return [machine(), String(process.pid), startOf(process.pid) ?? '0', random].join('/');
}

/**
 * Whether the replica of that name has certainly ended. Only replicas in this machine's PID namespace can be checked;
 * for others, and for processes that `/proc` hides, only the end of their lease tells.
 */
export function hasReplicaEnded(replica: string): boolean {
  const [where, pid = '', started] = replica.split('/');
  if (where !== machine()) return false;
  const seen = startOf(Number(pid));
  if (seen !== null) return seen !== started;
  return !isThere(Number(pid));
}

function machine(): string {
  try {
    const boot_id = readBootId();
    return boot_id === '' ? 'unknown' : `${boot_id}:${readPidNamespace().replace(/\D/g, '')}`;
  } catch {
    return 'unknown';
  }
}

/** Start time of a process in kernel ticks; `ended` for a zombie, null if it is not visible. */
function startOf(pid: number): string | null {
  try {
    const stat = readStatNow(pid);
    return stat && (isZombie(stat) ? 'ended' : String(stat.start_ticks));
  } catch {
    return null; // no descriptor is left to read with
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
