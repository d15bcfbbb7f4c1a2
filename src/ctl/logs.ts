import type { Process } from '../client/streams/process.ts';
import { following, unlessInterrupted } from './api/following.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';
import { OutputSink } from './terminal/output-sink.ts';

/** Which output to print. */
export interface FollowOptions {
  stream?: 'stdout' | 'stderr' | 'all' | undefined;
  /** Starts this many lines before the end; without it, at the oldest that is kept. */
  tail_lines?: number | undefined;
  /** Whether to continue until the process ends. */
  follow: boolean;
  /** Whether to hold the process up rather than miss output. */
  lossless?: boolean;
  /** Whether the daemon has accepted a request before, so that even the first connection is retried. */
  is_known?: boolean;
  /** Whether a terminal gets the output as it is; otherwise what it would act upon is escaped, but for colours. */
  is_raw: boolean;
}

/** Prints a process's output, stdout to stdout and stderr to stderr. Contract section 4, `GET /processes/{id}/output`. */
export async function logs(
  context: Context,
  process_id: string,
  options: FollowOptions,
  interrupted: AbortSignal,
): Promise<ExitCode> {
  const process = await followOutput(context, process_id, options, interrupted);
  if (process && context.json) await context.out.line(JSON.stringify({ type: 'exit', process }));
  return EXIT.ok;
}

/**
 * Writes a process's output to this program's own streams, both in the order in which the daemon has read them. With
 * `follow` it continues until the process has ended, and resolves with it, or until `interrupted`, and resolves with null.
 */
export async function followOutput(
  context: Context,
  process_id: string,
  { is_raw, ...options }: FollowOptions,
  interrupted: AbortSignal,
): Promise<Process | null> {
  const sink = new OutputSink(context, is_raw);
  const followed = { ...options, ...following(interrupted, () => tellLost(context)) };
  try {
    return await unlessInterrupted(interrupted, async () => {
      for await (const event of context.sandbox.output(process_id, followed)) {
        if (event.type === 'exit') return event.process;
        await sink.take(event);
      }
      return null;
    });
  } finally {
    await sink.end();
  }
}

/** Says that a connection was lost and is opened again. */
export function tellLost({ err }: Context): Promise<void> {
  return err.line('sandboxctl: connection lost; retrying');
}
