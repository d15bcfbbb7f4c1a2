import type { Job } from '../../base/schedule.ts';
import type { OperationRecovery } from './operation-recovery.ts';
import type { Operations, SandboxServices } from './operations.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';

/** How often operations are looked for whose owner is gone. */
const LOOK_MS = 2_000;

/**
 * Takes over operations whose owner has died or given up, of whatever replica, and settles them: after a start, and
 * then again and again. Source: contract section 7, "/readyz", and fault cases on death at any point.
 */
export class RecoveryJob implements Job {
  readonly name = 'recovery';
  readonly #services: SandboxServices;
  readonly #operations: Operations;
  readonly #operation_recovery: OperationRecovery;
  #is_done = false;

  constructor(services: SandboxServices, operations: Operations, operation_recovery: OperationRecovery) {
    this.#services = services;
    this.#operations = operations;
    this.#operation_recovery = operation_recovery;
  }

  /** Everything that was left behind before this replica's start is settled, or is being cleaned up. */
  get is_done(): boolean {
    return this.#is_done;
  }

  readonly run = async (): Promise<number> => {
    const { store } = this.#services;
    const rows = await store.withOperation();
    const settled = rows.filter((row) => this.#operations.isAbandoned(row)).map((row) => this.#takeOver(row));
    // Later on, a sandbox that does not answer holds up no other's.
    if (this.#is_done) void Promise.all(settled).catch((error) => this.#notSettled(error));
    else await Promise.all(settled);
    this.#is_done = true;
    return LOOK_MS;
  };

  #notSettled(error: Error): void {
    this.#services.log.warn({ reason: error.message }, 'operations that were left behind are settled later');
  }

  async #takeOver(row: ManagedSandboxRow): Promise<void> {
    const { store, log } = this.#services;
    const { sandbox_id, operation } = row;
    const taken = await store.takeOver(row, this.#operations.lease());
    if (!taken) return;
    log.info({ sandbox_id, operation }, 'an operation that was left behind is settled');
    const settling = this.#operation_recovery.resolve(taken);
    // Cleanups keep themselves alive, and a start need not wait for them.
    if (operation === 'cleaning') return;
    await this.#operations.run(sandbox_id, () => settling);
  }
}
