import { runSync } from '../../support/run-sync.ts';
import type { Daemon } from './daemon.ts';

/** Changes a resource limit of a daemon that runs, in the words of prlimit. */
export function setLimit(daemon: Daemon, limit: string): void {
  runSync('prlimit', `--pid=${daemon.pid}`, limit);
}
