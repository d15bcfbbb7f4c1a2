import type { ProcessView } from '../contract/processes.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';

/**
 * Ends a process and everything it started, and prints how it ended. `grace_ms` is the time from SIGTERM to SIGKILL.
 * Contract section 4, `DELETE /processes/{id}`.
 */
export async function stop(
  { sandbox, out, json }: Context,
  process_id: string,
  grace_ms?: number,
): Promise<ExitCode> {
  const process = await sandbox.DELETE('/api/v1/processes/{process_id}', {
    path: { process_id },
    query: { grace_ms },
    timeout_ms: 0, // the answer comes after the grace, however long
  });
  await out.line(json ? JSON.stringify(process) : `${process.process_id} ${howItEnded(process)}`);
  return EXIT.ok;
}

/** How a process ended, in words. */
export function howItEnded({
  state,
  exit_code,
  signal,
}: Pick<ProcessView, 'state' | 'exit_code' | 'signal'>): string {
  if (exit_code === null) return `${state}; exit code unknown`;
  return signal === null ? `${state} with ${exit_code}` : `${state} by ${signal}`;
}
