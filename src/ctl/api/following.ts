import type { FollowStreamOptions } from '../../client/streams/reconnect.ts';

/** Time between two connections, in ms. */
export const RECONNECT_MS = 1_000;

/** How a command follows a stream: a lost connection is told, and made again where it ended. */
export function following(
  signal: AbortSignal,
  tellLost: () => Promise<void>,
): Required<Pick<FollowStreamOptions, 'signal' | 'reconnect_ms' | 'onConnection'>> {
  return {
    signal,
    reconnect_ms: RECONNECT_MS,
    // Where nobody reads stderr any more, nobody is told.
    onConnection: (is_connected) => void (is_connected || tellLost().catch(() => {})),
  };
}

/** What `work` resolves with; null where it failed because it was `interrupted`. */
export async function unlessInterrupted<Result>(
  interrupted: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result | null> {
  try {
    return await work();
  } catch (error) {
    if (interrupted.aborted) return null;
    throw error;
  }
}
