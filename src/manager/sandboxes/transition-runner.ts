import type { RuntimeChange } from '../../runtime/runtime.ts';
import type { Transaction } from '../database/database.ts';
import type { Moment } from '../database/database-clock-store.ts';
import type { HeldOperation } from './held-operation.ts';
import type { OperationRecovery } from './operation-recovery.ts';
import type { Operations } from './operations.ts';
import type { ManagedSandboxRow, SandboxChanges } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';
import { runtimeGone, transitionError, type Verb } from './transitions.ts';

/** A sandbox of a team; `team_id` is null if the manager itself acts. */
export interface SandboxRef {
  sandbox_id: string;
  team_id: string | null;
}

/** One transition: what its first commit checks and adds, what the runtime does, and what its last commit changes. */
export interface Steps {
  /** Not null: it begins only if the sandbox's idle time has ended by then, in wall time in ms. */
  idle_by_ms?: number | null;
  /** The sandbox's daemon records an event of it, which is for the feed. */
  has_event?: true;
  admit?: (tx: Transaction) => Promise<void>;
  onBegin?: (tx: Transaction, row: ManagedSandboxRow) => Promise<void>;
  carryOut: (row: ManagedSandboxRow, held: HeldOperation) => Promise<RuntimeChange>;
  changes: (row: ManagedSandboxRow, at: Moment) => SandboxChanges;
  onEnd: (tx: Transaction, row: ManagedSandboxRow, now_ms: number) => Promise<void>;
}

/** What TransitionRunner uses of the manager. */
type TransitionServices = Pick<SandboxServices, 'clock' | 'store' | 'metrics' | 'feed'>;

/**
 * Runs a transition: a commit that begins it, the runtime's part, and a commit that ends it. If the runtime or the last
 * commit fails, the operation is resolved at once. The states are described in `transitions.ts`.
 */
export class TransitionRunner {
  readonly #services: TransitionServices;
  readonly #operations: Operations;
  readonly #operation_recovery: OperationRecovery;

  constructor(services: TransitionServices, operations: Operations, operation_recovery: OperationRecovery) {
    this.#services = services;
    this.#operations = operations;
    this.#operation_recovery = operation_recovery;
  }

  /** Resolves with the row after the transition. Throws `not_found`, `conflict`, and what a step throws. */
  async run(named: SandboxRef, verb: Exclude<Verb, 'delete'>, steps: Steps): Promise<ManagedSandboxRow> {
    const { store, clock, metrics, feed } = this.#services;
    const lease = this.#operations.lease();
    const begun = await store.write(async (tx) => {
      await steps.admit?.(tx);
      const { idle_by_ms = null } = steps;
      const where = { ...named, at: clock.moment(), idle_by_ms };
      const row = await store.beginTransition(tx, verb, where, lease);
      if ('refused' in row) throw transitionError(row);
      if (steps.has_event) await feed.expect(tx, row.sandbox_id);
      await steps.onBegin?.(tx, row);
      return row;
    });
    return this.#operations.run(begun, lease, async (held) => {
      try {
        const ended = await this.#carryOut(begun, steps, held);
        metrics.transitions.add([verb, 'done']);
        return ended;
      } catch (error) {
        metrics.transitions.add([verb, 'failed']);
        throw error;
      }
    });
  }

  async #carryOut(row: ManagedSandboxRow, steps: Steps, held: HeldOperation): Promise<ManagedSandboxRow> {
    const { store, clock, feed } = this.#services;
    try {
      const carried_out = await steps.carryOut(row, held);
      if (carried_out === 'lost' || carried_out === 'unknown') throw runtimeGone(carried_out);
      const reading = steps.has_event ? await feed.read(row) : null;
      return await store.write(async (tx) => {
        const at = clock.moment();
        const changes = { ...steps.changes(row, at), updated_at_ms: at.now };
        const ended = await this.#operations.endOperation(tx, held, changes);
        await steps.onEnd(tx, ended, ended.updated_at_ms);
        if (reading) await feed.store(tx, row, reading);
        return ended;
      });
    } catch (error) {
      throw (await this.#operation_recovery.resolve(held)) ?? error;
    }
  }
}
