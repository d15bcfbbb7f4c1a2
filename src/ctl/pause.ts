import { setTimeout } from 'node:timers/promises';

/**
 * Resolves after `ms`, or at once when `signal` aborts. Unlike the clock's timers it keeps the program running, because
 * between two connections nothing else does.
 */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, signal && { signal }).catch(() => {});
}
