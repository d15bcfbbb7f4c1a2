import type { ErrorCode } from '../../contract/errors.ts';
import type { Context } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';
import { pause } from '../pause.ts';
import { DaemonError } from './client.ts';

/** Time between two connections, in ms. */
export const RECONNECT_MS = 1_000;

/** Of a daemon that starts or stops, and of a manager that does not reach it or has no room now. */
const NOT_NOW = new Set<ErrorCode>(['shutting_down', 'unavailable', 'too_many_requests', 'quota_exceeded']);

/** Reads a stream over one connection after another, each from where the one before it ended. */
export interface ReconnectingReader<End> {
  /** Whether the daemon has accepted a request before, so that one that fails is made again. */
  readonly connected: boolean;
  /** Reads over one connection; resolves with the stream's end, or with `lost` where the connection broke before. */
  read(interrupted: AbortSignal): Promise<End | 'lost'>;
}

/** Says that a connection was lost and is opened again. */
export function tellLost({ err }: Context): Promise<void> {
  return err.line('sandboxctl: connection lost; retrying');
}

/**
 * Reads until the end, and resolves with it, or until `interrupted`, and resolves with null. `onLost` is called for each
 * connection that breaks.
 */
export async function readToEnd<End>(
  reader: ReconnectingReader<End>,
  interrupted: AbortSignal,
  onLost: () => Promise<void>,
): Promise<End | null> {
  while (!interrupted.aborted) {
    try {
      const end = await reader.read(interrupted);
      if (end !== 'lost') return end;
      if (!interrupted.aborted) await onLost();
    } catch (error) {
      if (interrupted.aborted) break;
      if (!reader.connected || !isTemporary(error)) throw error;
    }
    await pause(RECONNECT_MS, interrupted);
  }
  return null;
}

/** Whether the same request may be answered a moment later: nobody answered, or only not now. */
export function isRetried(error: unknown): boolean {
  if (error instanceof DaemonError) return error.code !== null && NOT_NOW.has(error.code);
  return error instanceof Failure && error.exit_code === EXIT.unreachable;
}

/** Whether the error may come from a daemon that is starting, stopping or paused, so that a retry makes sense. */
export function isTemporary(error: unknown): boolean {
  if (isRetried(error)) return true;
  return error instanceof DaemonError && (error.code === 'conflict' || error.code === 'gone');
}
