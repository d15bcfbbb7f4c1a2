import { timestamp } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';
import type { ManagedStatus } from '../../contract/words.ts';
import type { RuntimeState } from '../../runtime/runtime.ts';
import type { Operation, SandboxTable } from '../database/tables.ts';

/**
 * The states of a sandbox and its transitions.
 *
 *   claim                                resume
 *     └─► starting ──► running ──► paused ──► starting ──► running
 *                         └──────────┴─► terminating ─► gone
 *                         └──────────┴─► failed ─► terminating ─► gone
 *
 * `starting`: claimed or resumed, not yet up. `running`, `paused`: completed by the runtime. `failed`: the runtime has
 * died; only a deletion is possible. `terminating`: the deletion is committed and the cleanup is in progress; the row is
 * hidden once that is complete.
 *
 * A transition begins with a commit that stores its operation and owner, is carried out by the runtime, and ends with a
 * commit. Until then every other transition is refused. If the owner dies, another replica takes over, inspects the
 * runtime, and completes or undoes the operation.
 */
export type Verb = 'pause' | 'resume' | 'fork' | 'change' | 'delete';

interface Transition {
  /** The statuses from which it may begin. */
  from: readonly ManagedStatus[];
  operation: Operation;
  /** The status during the operation, if it differs. */
  during?: ManagedStatus;
}

/** The table of transitions; every UPDATE that begins one repeats its `from`. */
export const TRANSITIONS: Record<Verb, Transition> = {
  pause: { from: ['running'], operation: 'pausing' },
  resume: { from: ['paused'], operation: 'resuming', during: 'starting' },
  fork: { from: ['running', 'paused'], operation: 'forking' },
  change: { from: ['running', 'paused'], operation: 'changing' },
  delete: { from: ['running', 'paused', 'failed'], operation: 'cleaning', during: 'terminating' },
};

/** Why a transition could not begin. `busy`: another is in progress; `status`: not allowed from this status. */
export type TransitionRefusal =
  | { refused: 'not_found'; status: null; deleted_at_ms: number | null }
  | { refused: 'busy' | 'status'; status: ManagedStatus };

/** The error for a sandbox that is not there; with the wall time of its deletion while that is known. */
export function noSandbox(deleted_at_ms: number | null = null): ApiError {
  if (deleted_at_ms === null) return new ApiError('not_found', 'There is no such sandbox.');
  return new ApiError('not_found', 'The sandbox has been deleted.', { deleted_at: timestamp(deleted_at_ms) });
}

/** The error for a refused transition: `not_found` or `conflict`. */
export function transitionError(refusal: TransitionRefusal): ApiError {
  const { refused, status } = refusal;
  if (refused === 'not_found') return noSandbox(refusal.deleted_at_ms);
  if (refused === 'busy') {
    return new ApiError('conflict', 'Another transition of the sandbox is in progress.', { status });
  }
  return new ApiError('conflict', `The sandbox is ${status}.`, { status });
}

/** The error for a sandbox whose runtime has died (`conflict`), or of which nothing is here (`unavailable`). */
export function runtimeGone(what: 'lost' | 'unknown'): ApiError {
  if (what === 'unknown') {
    const text = 'Nothing of the sandbox is in sight here: where it runs cannot be known.';
    return new ApiError('unavailable', text, { retry_after_s: 5 });
  }
  return new ApiError('conflict', "The sandbox's runtime has died; it can only be deleted.", {
    status: 'failed',
  });
}

/** Whether an operation is the cleanup of a deletion. */
export function isCleaning(operation: Operation | null): boolean {
  return operation === 'cleaning' || operation === 'removing';
}

/**
 * How an abandoned operation is resolved.
 * - a status: the sandbox has reached it; `again`: the row's values are applied to the runtime again
 * - `undo`: everything of the sandbox is removed, as by a deletion once its daemon has run
 */
export type Resolution = ManagedStatus | 'again' | 'undo';

/** The resolution of an abandoned operation, given the runtime's state of the sandbox. */
export function resolutionOf(
  { operation }: Pick<SandboxTable, 'operation'>,
  runtime: RuntimeState,
): Resolution {
  // No caller has seen the sandbox.
  if (operation === 'claiming' || operation === 'copying') return 'undo';
  // One that is absent may run elsewhere: the watch job tells.
  if (runtime === 'lost') return 'failed';
  if (operation === 'pausing') return runtime === 'paused' ? 'paused' : 'running';
  if (operation === 'resuming') return runtime === 'running' ? 'running' : 'paused';
  return 'again';
}
