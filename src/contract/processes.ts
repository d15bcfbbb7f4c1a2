import type { ResourceUsage } from './events.ts';

/** Shapes of the process routes. Source: contract section 4, rows `/processes…`. */

export type ProcessState = 'running' | 'paused' | 'exited' | 'crashed' | 'restarting';

export const RESTART_POLICIES = ['never', 'on-failure', 'always'] as const;

export type RestartPolicy = (typeof RESTART_POLICIES)[number];

/** `max_restarts: 0` means none, absent means no limit; `backoff_ms` is the first delay. */
export interface RestartOptions {
  policy: RestartPolicy;
  max_restarts?: number;
  backoff_ms?: number;
}

export interface PtySize {
  cols: number;
  rows: number;
}

/** When a process counts as ready: something listens on `port`, or `log` was written to stdout or stderr. */
export type ReadyProbe = { port: number } | { log: string };

/** The body of `POST /processes`: exactly one of `command` and `shell`. */
export interface ProcessRequest {
  command?: string[];
  shell?: string;
  process_id?: string;
  cwd?: string;
  env?: Record<string, string>;
  user?: string;
  name?: string;
  stdin?: 'pipe' | 'ignore';
  timeout_ms?: number;
  restart?: RestartOptions;
  pty?: PtySize;
  ready?: ReadyProbe;
}

/** A process as the API answers it. Times are RFC 3339 UTC with milliseconds. */
export interface ProcessView {
  process_id: string;
  pid: number;
  state: ProcessState;
  command: string[];
  exit_code: number | null;
  signal: string | null;
  started_at: string;
  exited_at: string | null;
  restart_count: number;
  ready: boolean | null;
  resource_usage: ResourceUsage;
}

export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const;

export type OutputStream = (typeof OUTPUT_STREAMS)[number];

/** Byte offsets into both streams of a process. */
export type OutputPosition = Record<OutputStream, number>;
