import type { Readable } from 'node:stream';
import { SandboxdError } from '../../client/error.ts';
import { RECONNECT_MS } from '../api/following.ts';
import type { Context } from '../context.ts';

/**
 * Sends `input` to a process's stdin and closes that at the end, or stops when `ended` aborts. Contract section 4, `POST
 * /processes/{id}/stdin`.
 */
export async function sendStdin(
  { sandbox, err }: Context,
  process_id: string,
  input: Readable,
  ended: AbortSignal,
): Promise<void> {
  ended.addEventListener('abort', () => input.destroy());
  try {
    await sandbox.sendInput(process_id, input, { signal: ended, reconnect_ms: RECONNECT_MS });
  } catch (error) {
    if (ended.aborted) return;
    if (!(error instanceof SandboxdError && error.code === 'conflict')) throw error;
    const path = { process_id };
    const { exited_at } = await sandbox.GET('/api/v1/processes/{process_id}', { path });
    if (exited_at === null) await err.line(`sandboxctl: stdin is not accepted: ${error.message}`);
  }
}
