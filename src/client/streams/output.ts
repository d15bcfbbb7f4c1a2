import type { Answer } from '../connector.ts';
import { SandboxdError } from '../error.ts';
import type { SandboxRoutes } from '../sandbox-routes.ts';
import { type OutputGap, type OutputPiece, OutputPosition, objectIn } from './bytes.ts';
import type { Process } from './process.ts';
import { type FollowStreamOptions, followEvents } from './reconnect.ts';

/** Which output is read; at most one of `offset`, `tail_bytes` and `tail_lines`. Without: from the oldest that is kept. */
export interface OutputOptions extends FollowStreamOptions {
  stream?: 'stdout' | 'stderr' | 'all';
  offset?: number;
  tail_bytes?: number;
  tail_lines?: number;
  /** Until the process has ended; otherwise up to what it has written by now. Default true. */
  follow?: boolean;
  /** While it is read, the process is held up rather than that output is missed. */
  lossless?: boolean;
  /** Whether the process was there a moment ago, so that even the first connection is tried again. */
  is_known?: boolean;
}

/** What comes of a process: its output, where some of it is no longer kept, and its end. */
export type OutputEvent = OutputPiece | OutputGap | { type: 'exit'; process: Process };

/**
 * The output of a process, byte for byte, over as many connections as it takes, then its end. Contract section 4, GET
 * `/processes/{id}/output`.
 */
export async function* outputOf(
  routes: SandboxRoutes,
  process_id: string,
  { signal, onConnection, reconnect_ms, is_known, follow = true, stream, ...query }: OutputOptions,
): AsyncGenerator<OutputEvent, void> {
  const position = new OutputPosition();
  const ask = (from: Record<string, unknown>, resumed: Record<string, string>): Promise<Answer> =>
    routes.ask('GET', '/processes/{process_id}/output', {
      path: { process_id },
      query: { stream, follow, ...from, lossless: query.lossless },
      headers: { accept: 'text/event-stream', ...resumed },
      signal,
    });
  const open = (last_id: string | null): Promise<Answer> => {
    const resumed: Record<string, string> = last_id === null ? {} : { 'last-event-id': last_id };
    return ask(query, resumed).catch((error: unknown) => {
      // What is no longer kept shows by the next offset.
      const is_gone = error instanceof SandboxdError && error.code === 'gone' && last_id !== null;
      if (!is_gone) throw error;
      return ask({}, {});
    });
  };
  for await (const { event, data } of followEvents({
    open,
    signal,
    onConnection,
    reconnect_ms,
    follow,
    is_known,
  })) {
    const value = objectIn(data);
    if (event === 'output') yield* position.take(value);
    if (event === 'gone') yield position.gap(value as unknown as OutputGap);
    if (event === 'exit') return yield { type: 'exit', process: value as unknown as Process };
  }
}
