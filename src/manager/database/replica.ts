import { readFileSync, readlinkSync } from 'node:fs';
import { kernelRandom } from '../../base/entropy.ts';

/** A name that no other replica has or had: machine and process table, process, its start, and a random part. */
export function replicaName(): string {
  const random = kernelRandom(4).toString('hex');
  return [machine(), String(process.pid), startOf(process.pid) ?? '0', random].join('/');
}

/**
 * Whether the replica of that name is certain to have ended. Only those of this machine and process table can be
 * told; of others, and of those that `/proc` hides, the lease of what they own tells.
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

/** When a process began, in the kernel's ticks; `ended` where only its remains are left, null where it is not seen. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? 'ended' : (fields[18] ?? null);
  } catch {
    return null;
  }
}

/** Whether the kernel knows a process, also one of another user that `/proc` does not show. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
