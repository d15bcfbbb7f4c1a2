/** The ten event kinds and their payloads. Source: contract section 2, "Event kinds and payloads". */

export const EVENT_TYPES = [
  'sandbox.ready',
  'sandbox.paused',
  'sandbox.resumed',
  'sandbox.killed',
  'sandbox.deleted',
  'process.started',
  'process.exited',
  'process.crashed',
  'file.modified',
  'agent.event',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** What a sandbox or process uses: CPU time in ms since start, resident memory in bytes, number of processes. */
export interface ResourceUsage {
  cpu_ms: number;
  memory_bytes: number;
  processes: number;
}

export interface ProcessStarted {
  process_id: string;
  pid: number;
  command: string[];
  cwd: string;
  name: string | null;
  restart_count: number;
}

/** `exit_code` is the code, or 128 + signal number; null only with `reason` `unknown`. Previews are the last 2 KiB. */
export interface ProcessExited {
  process_id: string;
  pid: number;
  exit_code: number | null;
  signal: string | null;
  duration_ms: number;
  timed_out: boolean;
  stdout_preview: string;
  stderr_preview: string;
  restart_count: number;
  reason?: 'unknown';
}

export interface ProcessCrashed extends Omit<ProcessExited, 'reason'> {
  reason: 'signal' | 'oom';
  core_dumped: boolean;
}

export type FileOperation = 'create' | 'write' | 'remove' | 'rename' | 'chmod';

/** `path` is absolute; `*_base64` carry the bytes of a name that is not UTF-8 (contract section 6). */
export interface FileModified {
  event_type: FileOperation;
  path: string;
  path_base64?: string;
  old_path?: string;
  old_path_base64?: string;
  is_directory: boolean;
}

export interface EventPayloads {
  'sandbox.ready': { http_port: number; version: string; watch_dir: string | null };
  'sandbox.paused': { reason: string | null; resource_usage: ResourceUsage };
  'sandbox.resumed': { reason: string | null; paused_ms: number };
  'sandbox.killed': {
    reason: 'signal' | 'main_process_exited' | 'api';
    signal: string | null;
    uptime_ms: number;
  };
  'sandbox.deleted': { reason: 'api' | 'ttl_expired' | 'runtime_lost'; actor: string | null };
  'process.started': ProcessStarted;
  'process.exited': ProcessExited;
  'process.crashed': ProcessCrashed;
  'file.modified': FileModified;
  'agent.event': Record<string, unknown>;
}

/** An event that the daemon itself makes, with its time in ms since the epoch. */
export type SandboxEvent = {
  [Type in EventType]: { event_type: Type; happened_at_ms: number; payload: EventPayloads[Type] };
}[EventType];

/** An event of one of the kinds that supervision emits. */
export type ProcessEvent = Extract<
  SandboxEvent,
  { event_type: 'process.started' | 'process.exited' | 'process.crashed' }
>;
