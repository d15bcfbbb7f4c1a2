import { libc } from './libc.ts';
import { signalName } from './signals.ts';

/** How a process ended: a code, or the signal that ended it, with whether it left a core dump. */
export type WaitStatus =
  | { code: number; signal: null }
  | { code: null; signal: string; core_dumped: boolean };

type OnEnded = (status: WaitStatus | null) => void;

const waitpid = libc.func('int waitpid(int pid, int *status, int options)');

const WITHOUT_WAITING = 1;
const SIGNAL = 0x7f;
const CORE_DUMPED = 0x80;

const waiting = new Map<number, OnEnded>();

/** To be called before the first child is started: the end of one is a signal to the daemon. For the main thread alone. */
export function openReaper(): void {
  if (!process.listeners('SIGCHLD').includes(reap)) process.on('SIGCHLD', reap);
}

/**
 * Calls `onEnded` once the child with this pid has ended: right after its status is read, until when the kernel keeps the pid. The
 * status is null if somebody else has read it.
 */
export function onceEnded(pid: number, onEnded: OnEnded): void {
  waiting.set(pid, onEnded);
}

/** One signal may stand for several ends, and for children of others. */
function reap(): void {
  const status = new Int32Array(1);
  for (const [pid, onEnded] of waiting) {
    const found = waitpid(pid, status, WITHOUT_WAITING);
    if (found === 0) continue;
    waiting.delete(pid);
    onEnded(found === pid ? waitStatus(status[0] as number) : null);
  }
}

function waitStatus(status: number): WaitStatus {
  const signal = status & SIGNAL;
  if (signal === 0) return { code: (status >> 8) & 0xff, signal: null };
  return { code: null, signal: signalName(signal), core_dumped: (status & CORE_DUMPED) !== 0 };
}
