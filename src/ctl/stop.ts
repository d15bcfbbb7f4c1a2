import type { ProcessView } from '../contract/processes.ts';
import { processPath } from './api/follow-output.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';

/** Ends a process with everything it started, and tells how it ended. Source: contract section 4, DELETE. */
export async function stop(
  { client, out, json }: Context,
  process_id: string,
  grace_ms?: number,
): Promise<ExitCode> {
  const process = await client.call<ProcessView>('DELETE', processPath(process_id), {
    query: { grace_ms },
    silence_timeout_ms: 0, // as long as the grace, whatever it is
  });
  await out.line(json ? JSON.stringify(process) : `${process.process_id} ${howItEnded(process)}`);
  return EXIT.ok;
}

/** How a process ended, in words. */
export function howItEnded({ state, exit_code, signal }: ProcessView): string {
  if (exit_code === null) return `${state}; its code is not known`;
  return signal === null ? `${state} with ${exit_code}` : `${state} by ${signal}`;
}
