import { type FollowOptions, followOutput } from './api/follow-output.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';

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
