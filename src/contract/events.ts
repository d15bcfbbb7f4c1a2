/** Event types and their payloads. Contract section 2, "Event kinds and payloads". */

/** Every event type. */
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

/** One of `EVENT_TYPES`. */
export type EventType = (typeof EVENT_TYPES)[number];

/** What a sandbox or process uses: CPU time in ms since its start, resident memory in bytes, number of processes. */
export interface ResourceUsage {
  cpu_ms: number;
  memory_bytes: number;
  processes: number;
}

/** Payload of `process.started`. `restart_count` is 0 for the first run. */
export interface ProcessStarted {
  process_id: string;
  pid: number;
  command: string[];
  cwd: string;
  name: string | null;
  restart_count: number;
}

/**
 * Payload of `process.exited`. `exit_code` is the code, or 128 + the signal's number; null only with `reason`
 * `unknown`, where the daemon was not running when the process ended. Previews hold at most the last 2 KiB.
 */
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

/** Payload of `process.crashed`: ended by a signal that nobody asked for, or by the kernel for lack of memory. */
export interface ProcessCrashed extends Omit<ProcessExited, 'reason'> {
  reason: 'signal' | 'oom';
  core_dumped: boolean;
}

/** What happened to a file or directory. */
export type FileOperation = 'create' | 'write' | 'remove' | 'rename' | 'chmod';

/**
 * Payload of `file.modified`. Paths are absolute; `old_path` only with `rename`. `*_base64` hold the bytes of a path
 * that is not UTF-8. Contract section 6.
 */
export interface FileModified {
  event_type: FileOperation;
  path: string;
  path_base64?: string;
  old_path?: string;
  old_path_base64?: string;
  is_directory: boolean;
}

/** The payload of each event type. */
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

/** An event before it has an id and a sequence. `happened_at_ms` counts from the Unix epoch. */
export type SandboxEvent = {
  [Type in EventType]: { event_type: Type; happened_at_ms: number; payload: EventPayloads[Type] };
}[EventType];

/** An event that process supervision emits. */
export type ProcessEvent = Extract<
  SandboxEvent,
  { event_type: 'process.started' | 'process.exited' | 'process.crashed' }
>;
