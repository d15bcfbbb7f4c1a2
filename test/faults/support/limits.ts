import { execFileSync } from 'node:child_process';
import type { Daemon } from './daemon.ts';

/** Changes a resource limit of a daemon that runs, in the words of prlimit. */
export function setLimit(daemon: Daemon, limit: string): void {
  execFileSync('prlimit', [`--pid=${daemon.pid}`, limit]);
}
