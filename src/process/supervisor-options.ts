import type { Writable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { ProcessView } from '../contract/processes.ts';
import type { Emit } from './event-queue.ts';

/** What a supervisor needs. */
export interface SupervisorOptions {
  clock: Clock;
  log: Log;
  /** `<state-dir>/processes`; created with mode 0700 if missing. */
  directory: string;
  /** Stores an event durably. While it rejects, the event is kept and tried again. */
  emit: Emit;
  /** The plain environment of children, without the daemon's secrets. Read at each start. */
  environment: () => Record<string, string>;
  /** The account of processes whose request names none; null is the daemon's own. */
  default_user: string | null;
  /** From SIGTERM to SIGKILL, unless a request names another. */
  grace_ms: number;
  /** Numbers from 0 to 1, for jitter. */
  random?: () => number;
}

/** Additions to a start. */
export interface SpawnExtras {
  /** Reads the output no further than a little until the first lossless follower has come, or for 60 s. */
  lossless?: boolean;
  /** Both streams of the process are also copied there. */
  copy_to?: { stdout: Writable };
  /** Replaces an ended process with the same id, instead of returning it. */
  replace_ended?: boolean;
}

/** `created` is false if a process with this id and request existed before. */
export interface SpawnResult {
  created: boolean;
  process: ProcessView;
}
