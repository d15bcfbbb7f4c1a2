import type { ResourceUsage } from './events.ts';

/** Shapes of the process routes. Source: contract section 4, rows `/processes…`. */

export type ProcessState = 'running' | 'paused' | 'exited' | 'crashed' | 'restarting';

export type RestartPolicy = 'never' | 'on-failure' | 'always';

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
