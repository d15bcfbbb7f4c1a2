import type { ManagedStatus } from '../../contract/sandboxes.ts';
import type { RuntimeState } from '../../runtime/runtime.ts';
import type { Operation, SandboxTable } from '../database/tables.ts';

/**
 * The states of a sandbox, and how it gets from one to the next.
 *
 *   claim                                resume
 *     └─► starting ──► running ──► paused ──► starting ──► running
 *                         └──────────┴─► terminating ─► gone
 *                         └──────────┴─► failed ─► terminating ─► gone
 *
 * `starting`: claimed or resumed, and not yet up. `running`, `paused`: as the runtime has completed it. `failed`: its
 * runtime died; nothing but a deletion is left. `terminating`: its deletion is committed, and cleanup is under way;
 * the record goes when that is complete.
 *
 * A transition begins with a commit that names its operation and owner, is carried out by the runtime, and ends with
 * a commit. In between every other transition is refused. Where its owner dies, whoever takes over asks the runtime
 * what has come of it, and finishes it or undoes it.
 */
export type Verb = 'pause' | 'resume' | 'fork' | 'change' | 'delete';

interface Transition {
  /** The statuses in which it may begin. */
  from: readonly ManagedStatus[];
  operation: Operation;
  /** The status meanwhile, where it is another. */
  during?: ManagedStatus;
}

export const TRANSITIONS: Record<Verb, Transition> = {
  pause: { from: ['running'], operation: 'pausing' },
  resume: { from: ['paused'], operation: 'resuming', during: 'starting' },
  fork: { from: ['running', 'paused'], operation: 'forking' },
  change: { from: ['running', 'paused'], operation: 'changing' },
  delete: { from: ['running', 'paused', 'failed'], operation: 'cleaning', during: 'terminating' },
};

/**
 * How an operation ends whose owner has died, by what the runtime says of the sandbox.
 * - a status: it is that now; `again`: it was changed half-way, and what the record says is applied again
 * - `undo`: nothing of the sandbox may stay; `clean`: its cleanup goes on
 */
export type Resolution = ManagedStatus | 'again' | 'undo' | 'clean';

export function resolutionOf(
  { operation, status }: Pick<SandboxTable, 'operation' | 'status'>,
  runtime: RuntimeState,
): Resolution {
  if (operation === 'cleaning' || status === 'terminating') return 'clean';
  // Nobody was told of it: it goes.
  if (operation === 'claiming' || operation === 'copying') return 'undo';
  if (runtime === 'lost' || runtime === 'absent') return 'failed';
  if (operation === 'pausing') return runtime === 'paused' ? 'paused' : 'running';
  if (operation === 'resuming') return runtime === 'running' ? 'running' : 'paused';
  return 'again';
}
