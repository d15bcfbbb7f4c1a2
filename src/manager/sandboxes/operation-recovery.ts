import { reasonOf } from '../database/database-errors.ts';
import type { Operation } from '../database/tables.ts';
import type { Operations } from './operations.ts';
import { envOf, leaseOf, timesOfResume } from './sandbox-row.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';
import { resolutionOf } from './transitions.ts';

/** What OperationRecovery uses of the manager. */
type RecoveryServices = Pick<
  SandboxServices,
  'clock' | 'log' | 'store' | 'runtime' | 'metering' | 'traffic' | 'seal' | 'replica'
>;

/**
 * Resolves operations that were not completed, because the runtime failed or their owner died. An operation that
 * cannot be resolved now is left to the next pass of `RecoveryJob`, of any replica, once its lease has ended.
 */
export class OperationRecovery {
  readonly #services: RecoveryServices;
  readonly #operations: Operations;
  readonly #clean: (row: ManagedSandboxRow) => Promise<void>;

  /** `clean` continues the cleanup of a deletion. */
  constructor(
    services: RecoveryServices,
    operations: Operations,
    clean: (row: ManagedSandboxRow) => Promise<void>,
  ) {
    this.#services = services;
    this.#operations = operations;
    this.#clean = clean;
  }

  /** Resolves an operation that this replica owns. Never rejects. */
  async resolve(row: ManagedSandboxRow): Promise<void> {
    const { sandbox_id, operation } = row;
    try {
      await this.#resolve(row);
    } catch (error) {
      const reason = reasonOf(error);
      this.#services.log.warn(
        { sandbox_id, operation, reason },
        'an operation could not be resolved: it will be retried',
      );
    }
  }

  async #resolve({ sandbox_id, operation }: ManagedSandboxRow): Promise<void> {
    const { runtime, store } = this.#services;
    const row = await store.find(store.db, sandbox_id, null);
    // A commit whose answer was lost may have ended it.
    if (!row || operation === null || row.operation !== operation) return;
    const state = await runtime.inspect(row.sandbox_id);
    const resolution = resolutionOf(row, state);
    if (resolution === 'clean') return this.#clean(row);
    if (resolution === 'undo') return this.#undo(row);
    if (resolution === 'failed') return this.#fail(row, operation);
    if (resolution === 'again') {
      // An interrupted copy may have left its source frozen.
      if (row.status === 'running' && state === 'paused') await runtime.resume(row.sandbox_id, null);
      if (operation === 'changing') await this.#changeBack(row);
      return this.#end(row, operation, row.status);
    }
    return this.#end(row, operation, resolution);
  }

  async #fail({ sandbox_id }: ManagedSandboxRow, operation: Operation): Promise<void> {
    const { store, metering, traffic, clock, log } = this.#services;
    log.warn({ sandbox_id }, "a sandbox's runtime has died");
    const usage = await traffic.usage(sandbox_id);
    const now_ms = clock.wallMs();
    await store.write(async (tx) => {
      const changes = { status: 'failed', updated_at_ms: now_ms } as const;
      await this.#operations.endOperation(tx, sandbox_id, operation, changes);
      await metering.ended(tx, sandbox_id, 'last_seen');
      await traffic.closed(tx, sandbox_id, usage, now_ms);
    });
  }

  async #end(
    row: ManagedSandboxRow,
    operation: Operation,
    status: ManagedSandboxRow['status'],
  ): Promise<void> {
    const { store, clock, metering, traffic } = this.#services;
    const { sandbox_id } = row;
    const usage = status === 'paused' ? await traffic.usage(sandbox_id) : null;
    const now_ms = clock.wallMs();
    const is_resumed = operation === 'resuming' && status === 'running';
    await store.write(async (tx) => {
      const ended = await this.#operations.endOperation(tx, sandbox_id, operation, {
        status,
        updated_at_ms: now_ms,
        ...(is_resumed
          ? { runtime_generation: row.runtime_generation + 1, ...timesOfResume(row, now_ms) }
          : {}),
      });
      if (is_resumed) {
        await metering.began(tx, leaseOf(ended), now_ms);
        await traffic.began(tx, ended, now_ms);
      }
      if (status === 'paused') {
        await metering.ended(tx, sandbox_id, now_ms);
        await traffic.closed(tx, sandbox_id, usage, now_ms);
      }
    });
  }

  /** The row still has the old values: apply them to the runtime again. */
  async #changeBack(row: ManagedSandboxRow): Promise<void> {
    const { runtime, seal } = this.#services;
    await runtime.change(row.sandbox_id, { env: envOf(row, seal), memory_mib: row.memory_mib });
  }

  async #undo({ sandbox_id }: ManagedSandboxRow): Promise<void> {
    const { runtime, store, replica } = this.#services;
    await runtime.end(sandbox_id);
    await runtime.remove(sandbox_id);
    await store.write((tx) => store.drop(tx, sandbox_id, replica));
  }
}
