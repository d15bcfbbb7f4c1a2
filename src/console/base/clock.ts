/** The page's only source of time and timers. */

/** Wall time in ms since the epoch. */
export function nowMs(): number {
  return Date.now();
}

/** Calls `run` once after `delay_ms`; what it returns prevents that. */
export function after(delay_ms: number, run: () => void): () => void {
  const timer = setTimeout(run, delay_ms);
  return () => clearTimeout(timer);
}

/** Resolves after `delay_ms`, or at once when `signal` is aborted. */
export function sleep(delay_ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const cancel = after(delay_ms, resolve);
    signal?.addEventListener('abort', () => {
      cancel();
      resolve();
    });
  });
}
