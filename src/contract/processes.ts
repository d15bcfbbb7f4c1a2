import type { ResourceUsage } from './events.ts';

/** Shapes of the process routes. Contract section 4, "Processes". */

/** The states of a supervised process; `restarting` is the delay between two runs. */
export const PROCESS_STATES = ['running', 'paused', 'exited', 'crashed', 'restarting'] as const;

/** One of `PROCESS_STATES`. */
export type ProcessState = (typeof PROCESS_STATES)[number];

/** When an ended process is started again. */
export const RESTART_POLICIES = ['never', 'on-failure', 'always'] as const;

/** One of `RESTART_POLICIES`. */
export type RestartPolicy = (typeof RESTART_POLICIES)[number];

/**
 * A process as the API shows it. Times are RFC 3339 UTC with milliseconds. `exit_code` is null while it runs and where
 * it is unknown; `command` may be only the beginning (`command_truncated`); `user` is null for the daemon's own account; `timed_out` and `duration_ms` are those of the last run,
 * false and null while it runs; `ready` is null without a probe.
 */
export interface ProcessView {
  process_id: string;
  name: string | null;
  pid: number;
  state: ProcessState;
  command: string[];
  command_truncated: boolean;
  cwd: string;
  user: string | null;
  exit_code: number | null;
  signal: string | null;
  timed_out: boolean;
  started_at: string;
  exited_at: string | null;
  duration_ms: number | null;
  restart_count: number;
  ready: boolean | null;
  resource_usage: ResourceUsage;
}

/** The output streams of a process. */
export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const;

/** One of `OUTPUT_STREAMS`. */
export type OutputStream = (typeof OUTPUT_STREAMS)[number];

/** A byte offset into each stream of a process. */
export type OutputPosition = Record<OutputStream, number>;
