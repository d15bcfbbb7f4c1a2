import type { Readable } from 'node:stream';
import type { ProcessView } from '../../contract/processes.ts';
import { DaemonError } from '../api/client.ts';
import { processPath } from '../api/follow-output.ts';
import { isRetried, RECONNECT_MS } from '../api/reconnecting.ts';
import type { Context } from '../context.ts';
import { pause } from '../pause.ts';

/**
 * Sends `input` to a process's stdin and closes that at the end, or stops when `ended` aborts. Each piece is sent with
 * its offset until the daemon accepts it, so that a lost connection neither loses nor repeats a byte; only then is the
 * next one read. Contract section 4, `POST /processes/{id}/stdin`.
 */
export async function sendStdin(
  context: Context,
  process_id: string,
  input: Readable,
  ended: AbortSignal,
): Promise<void> {
  ended.addEventListener('abort', () => input.destroy());
  let offset = 0;
  try {
    for await (const chunk of input) {
      await send(context, process_id, { offset }, chunk, ended);
      offset += chunk.length;
    }
    await send(context, process_id, { offset, end: 'true' }, new Uint8Array(), ended);
  } catch (error) {
    if (ended.aborted) return;
    if (!(error instanceof DaemonError && error.code === 'conflict')) throw error;
    const { exited_at } = await context.client.call<ProcessView>('GET', processPath(process_id));
    if (exited_at === null) await context.err.line(`sandboxctl: stdin is not accepted: ${error.message}`);
  }
}

async function send(
  { client }: Context,
  process_id: string,
  query: Record<string, string | number>,
  body: Uint8Array,
  ended: AbortSignal,
): Promise<void> {
  while (!ended.aborted) {
    try {
      return await client.call('POST', `${processPath(process_id)}/stdin`, {
        query,
        body,
        headers: { 'content-type': 'application/octet-stream' },
        silence_timeout_ms: 0, // until the process reads
        signal: ended,
      });
    } catch (error) {
      if (!isRetried(error)) throw error;
      await pause(RECONNECT_MS, ended);
    }
  }
}
