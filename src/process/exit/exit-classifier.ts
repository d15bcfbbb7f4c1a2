import type { ProcessEvent } from '../../contract/events.ts';
import type { ExitStatus } from '../start/launch.ts';
import { exitCodeOf } from '../tree/signals.ts';
import type { OomWatch } from './oom.ts';

/** What is known about a run when it ends. */
export interface RunFacts {
  pid: number;
  /** Time of its start in ms after boot; 0 if it is unknown. */
  started_boot_ms: number;
  /** Signals that this daemon was requested to send, or sent for a time-out, a removal or the shutdown. */
  requested_signals: ReadonlySet<string>;
}

/** How a run ended, in the terms of the two events. `exit_code` is null if it is unknown. */
export type EndOfRun =
  | { kind: 'exited'; exit_code: number | null; signal: string | null }
  | { kind: 'crashed'; exit_code: number; signal: string; reason: 'signal' | 'oom'; core_dumped: boolean };

/**
 * Distinguishes an exit (chosen by the process, or by a requested signal) from a crash (any other signal). Source:
 * contract section 2, `process.exited` and `process.crashed`.
 */
export async function classifyEnd(status: ExitStatus, facts: RunFacts, oom: OomWatch): Promise<EndOfRun> {
  if (status === null) return { kind: 'exited', exit_code: null, signal: null };
  const { code, signal } = status;
  const exit_code = exitCodeOf(code, signal);
  if (signal === null || facts.requested_signals.has(signal)) return { kind: 'exited', exit_code, signal };
  const by_oom = signal === 'SIGKILL' && (await oom.hasKilled(facts.pid, facts.started_boot_ms));
  return {
    kind: 'crashed',
    exit_code,
    signal,
    reason: by_oom ? 'oom' : 'signal',
    core_dumped: status.core_dumped,
  };
}

/** The other fields of an end's event. */
export interface EndDetails {
  process_id: string;
  pid: number;
  duration_ms: number;
  timed_out: boolean;
  stdout_preview: string;
  stderr_preview: string;
  restart_count: number;
}

/** The one event of an end, with its keys in the contract's order. */
export function endEvent(end: EndOfRun, details: EndDetails, happened_at_ms: number): ProcessEvent {
  const { process_id, pid, ...rest } = details;
  const { exit_code, signal } = end;
  const payload = { process_id, pid, exit_code, signal, ...rest };
  if (end.kind === 'exited') {
    const unknown = exit_code === null ? { reason: 'unknown' as const } : {};
    return { event_type: 'process.exited', happened_at_ms, payload: { ...payload, ...unknown } };
  }
  const { reason, core_dumped } = end;
  return { event_type: 'process.crashed', happened_at_ms, payload: { ...payload, reason, core_dumped } };
}
