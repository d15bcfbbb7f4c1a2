import { type Clock, sleep } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';
import { transitionError } from './operations.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { SandboxRef } from './transition-runner.ts';

/** How long a call waits for the sandbox that it resumes, and how often it checks. */
const WAIT_MS = 20_000;
const POLL_MS = 50;

/**
 * The running sandbox for a call of its process routes. A paused one with `auto_resume` is resumed first. Throws
 * `not_found`, `conflict` if it is not running and is not resumed, and what a resume throws. Source: contract section 7,
 * `auto_resume`.
 */
export async function runningSandbox(
  sandboxes: Sandboxes,
  named: SandboxRef,
  clock: Clock,
): Promise<ManagedSandboxRow> {
  const end_ms = clock.monotonicMs() + WAIT_MS;
  for (;;) {
    const row = await sandboxes.get(named);
    const { status, operation } = row;
    if (status === 'running' && operation !== 'pausing') return row;
    const may_run = row.auto_resume === 1 && (status === 'paused' || operation !== null);
    if (!may_run || status === 'terminating' || clock.monotonicMs() > end_ms) {
      throw transitionError({ refused: 'status', status });
    }
    if (operation !== null) await sleep(clock, POLL_MS);
    else await resume(sandboxes, named);
  }
}

async function resume(sandboxes: Sandboxes, named: SandboxRef): Promise<void> {
  try {
    await sandboxes.resume(named, 'auto_resume');
  } catch (error) {
    // Another call was faster.
    if (!(error instanceof ApiError) || error.code !== 'conflict') throw error;
  }
}
