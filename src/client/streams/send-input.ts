import { pause } from '../pause.ts';
import type { SandboxRoutes } from '../sandbox-routes.ts';
import { type FollowStreamOptions, mayPass, reconnectDelayMs } from './reconnect.ts';

/** What is sent to a process's stdin. */
export type Input = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * Sends input to a process and closes its stdin at the end. Each piece is sent with its offset until the server accepts it,
 * so that a lost connection neither loses nor repeats a byte; only then is the next one taken. Throws `conflict` where the
 * process takes no more. Contract section 4, POST `/processes/{id}/stdin`.
 */
export async function sendInput(
  routes: SandboxRoutes,
  process_id: string,
  input: Input,
  { signal, reconnect_ms }: Omit<FollowStreamOptions, 'onConnection'>,
): Promise<void> {
  const send = async (query: Record<string, unknown>, body: Uint8Array): Promise<void> => {
    for (let failures = 1; ; failures++) {
      try {
        const call = { path: { process_id }, query, body, signal };
        await routes.data('POST', '/processes/{process_id}/stdin', { ...call, timeout_ms: 0 });
        return;
      } catch (error) {
        if (!mayPass(error) || error.code === 'conflict') throw error;
      }
      await pause(reconnect_ms ?? reconnectDelayMs(failures), signal);
    }
  };
  let offset = 0;
  for await (const piece of input) {
    await send({ offset }, piece);
    offset += piece.length;
  }
  await send({ offset, end: true }, new Uint8Array());
}
