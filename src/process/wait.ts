import { type Clock, sleep } from '../base/clock.ts';
import { ApiError } from '../contract/errors.ts';
import type { SupervisedProcess } from './process.ts';

/** Shared: making an error for each wait takes longer than ending it. */
const OVER = new Error('the wait is over');

/** What a caller waits for: the end with all output readable, or the first readiness. */
export interface WaitOptions {
  for: 'exit' | 'ready';
  /** Without it, only `signal` ends the wait. */
  timeout_ms?: number;
  signal?: AbortSignal;
}

/**
 * Resolves true when the condition holds, false if the time is over first or `signal` aborts. Throws `conflict` if the
 * process ends before it is ready, or has no ready probe. Source: contract section 4, GET `/processes/{id}/wait`.
 */
export async function waitFor(
  clock: Clock,
  process: SupervisedProcess,
  query: WaitOptions,
): Promise<boolean> {
  const over = new AbortController();
  const until = query.signal ? AbortSignal.any([query.signal, over.signal]) : over.signal;
  if (query.timeout_ms !== undefined) void sleep(clock, query.timeout_ms, until).then(() => over.abort(OVER));
  try {
    for (;;) {
      const seen = process.output.changes.version;
      if (hasCome(process, query.for)) return true;
      if (until.aborted) return false;
      await process.output.changes.after(seen, until);
    }
  } finally {
    over.abort(OVER);
  }
}

function hasCome(process: SupervisedProcess, what: WaitOptions['for']): boolean {
  if (what === 'exit') return process.is_drained;
  const { run, is_final } = process.record;
  const is_ready = run?.is_ready ?? null;
  if (is_ready) return true;
  if (is_ready === null) throw new ApiError('conflict', 'The process has no ready probe.');
  if (is_final) throw new ApiError('conflict', 'The process ended before it was ready.');
  return false;
}
