import type { Context } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';

/** Sends a signal to a process and everything in its group. Contract section 4, `POST /processes/{id}/signal`. */
export async function signal(context: Context, process_id: string, name: string): Promise<ExitCode> {
  await requestSignal(context, process_id, name);
  return EXIT.ok;
}

/** Asks the daemon to send a signal; a process that has ended is a `SandboxdError` with code `conflict`. */
export async function requestSignal({ sandbox }: Context, process_id: string, name: string): Promise<void> {
  const call = { path: { process_id }, body: { signal: name } };
  await sandbox.POST('/api/v1/processes/{process_id}/signal', call);
}
