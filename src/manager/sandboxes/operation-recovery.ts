import type { ApiError } from '../../contract/errors.ts';
import type { RuntimeState } from '../../runtime/runtime.ts';
import { reasonOf } from '../database/database-errors.ts';
import type { Deletions } from './deletion.ts';
import type { HeldOperation } from './held-operation.ts';
import type { NewLease, Operations } from './operations.ts';
import { envOf, leaseOf, timesOfResume } from './sandbox-row.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';
import { isCleaning, resolutionOf, type TransitionRefusal } from './transitions.ts';

const UNRESOLVED = 'an operation could not be resolved: it will be retried';

/** What OperationRecovery uses of the manager. */
type RecoveryServices = Pick<
  SandboxServices,
  'clock' | 'log' | 'store' | 'runtime' | 'metering' | 'traffic' | 'feed' | 'seal'
>;

/** The status of a sandbox without an operation, and the number of its last one, as they were read. */
type RecordedState = Pick<ManagedSandboxRow, 'sandbox_id' | 'status' | 'operation_fence'>;

/**
 * Resolves operations that were not completed, because the runtime failed or their owner died. An operation that
 * cannot be resolved now is left to the next pass of `RecoveryJob`, of any replica, once its lease has ended.
 *
 * Between the check of a lease and what it allows a replica may be frozen for any time, and then do it although the
 * operation is another's: whoever has lost one undoes that, see `settle`.
 */
export class OperationRecovery {
  readonly #services: RecoveryServices;
  readonly #operations: Operations;
  readonly #deletions: Pick<Deletions, 'clean' | 'undo'>;

  constructor(
    services: RecoveryServices,
    operations: Operations,
    deletions: Pick<Deletions, 'clean' | 'undo'>,
  ) {
    this.#services = services;
    this.#operations = operations;
    this.#deletions = deletions;
  }

  /** Resolves an operation that this replica has just taken over; of a cleanup only its begin is waited for. */
  async resume(row: ManagedSandboxRow, lease: NewLease): Promise<void> {
    const { runtime, log } = this.#services;
    const { sandbox_id, operation, operation_fence } = row;
    log.info({ sandbox_id, operation }, 'an abandoned operation is being resolved');
    try {
      await runtime.fenceOff(sandbox_id, operation_fence);
    } catch (error) {
      log.warn({ sandbox_id, operation, reason: reasonOf(error) }, UNRESOLVED);
      return;
    }
    if (isCleaning(operation)) void this.#deletions.clean(row, lease);
    else await this.#operations.run(row, lease, (held) => this.resolve(held, true));
  }

  /**
   * Resolves an operation that this replica owns; `was_left`: by its last owner, in the middle of any step. Never rejects;
   * gives the error for the caller where it is another's by now, whatever has gone wrong here besides.
   */
  async resolve(held: HeldOperation, was_left = false): Promise<ApiError | null> {
    const { store, log } = this.#services;
    const { sandbox_id, operation } = held;
    try {
      const row = await store.find(store.db, sandbox_id, null);
      if (row?.operation_fence !== held.number) return held.lose();
      // A commit whose answer was lost may have ended it.
      if (row.operation !== null) await this.#resolve(row, held, was_left);
    } catch (error) {
      held.lose();
      log.warn({ sandbox_id, operation, reason: reasonOf(error) }, UNRESOLVED);
    }
    return null;
  }

  async #resolve(row: ManagedSandboxRow, held: HeldOperation, was_left: boolean): Promise<void> {
    const { runtime } = this.#services;
    const state = await runtime.inspect(row.sandbox_id);
    const resolution = resolutionOf(row, state);
    if (resolution === 'undo') return this.#undo(held, state);
    if (resolution === 'failed') return this.#fail(held);
    const status = resolution === 'again' ? row.status : resolution;
    if (row.operation === 'changing') await this.#changeBack(row, held);
    const is_here = state === 'running' || state === 'paused';
    if (is_here && state !== status) await this.#apply(held, status);
    // It may be so in part: frozen by its daemon, and not by the kernel.
    else if (is_here && was_left) await this.#apply(held, status).catch((error) => this.#bear(held, error));
    return this.#end(row, held, status);
  }

  /** What runs becomes what is recorded. */
  async #apply(held: HeldOperation, status: ManagedSandboxRow['status']): Promise<void> {
    const { runtime } = this.#services;
    if (status === 'paused') await runtime.pause(held.sandbox_id, null, held);
    else await runtime.resume(held.sandbox_id, null, held);
  }

  /** A daemon that does not answer must not keep its sandbox from being deleted. */
  #bear({ sandbox_id, is_lost }: HeldOperation, error: unknown): void {
    if (is_lost) throw error;
    this.#services.log.warn({ sandbox_id, reason: reasonOf(error) }, 'a sandbox does not confirm its status');
  }

  async #fail(held: HeldOperation): Promise<void> {
    const { store, metering, traffic, clock, log } = this.#services;
    const { sandbox_id } = held;
    log.warn({ sandbox_id }, "a sandbox's runtime has died");
    const usage = await traffic.usage(sandbox_id);
    await store.write(async (tx) => {
      const changes = { status: 'failed', updated_at_ms: clock.moment().now } as const;
      const failed = await this.#operations.endOperation(tx, held, changes);
      await metering.ended(tx, sandbox_id, 'last_seen');
      await traffic.closed(tx, sandbox_id, usage, failed.updated_at_ms);
    });
  }

  async #end(
    row: ManagedSandboxRow,
    held: HeldOperation,
    status: ManagedSandboxRow['status'],
  ): Promise<void> {
    const { store, clock, metering, traffic, runtime } = this.#services;
    const { sandbox_id } = row;
    const usage = status === 'paused' ? await traffic.usage(sandbox_id) : null;
    const is_resumed = row.operation === 'resuming' && status === 'running';
    await store.write(async (tx) => {
      const at = clock.moment();
      const ended = await this.#operations.endOperation(tx, held, {
        status,
        updated_at_ms: at.now,
        held_mib: status === 'paused' ? runtime.heldMib(sandbox_id) : null,
        ...(is_resumed ? { runtime_generation: row.runtime_generation + 1, ...timesOfResume(row, at) } : {}),
      });
      if (is_resumed) {
        await metering.began(tx, leaseOf(ended), ended.updated_at_ms);
        await traffic.began(tx, ended, ended.updated_at_ms);
      }
      if (status === 'paused') {
        await metering.ended(tx, sandbox_id, ended.updated_at_ms);
        await traffic.closed(tx, sandbox_id, usage, ended.updated_at_ms);
      }
    });
  }

  /** The row still has the old values: apply them to the runtime again. */
  async #changeBack(row: ManagedSandboxRow, held: HeldOperation): Promise<void> {
    const { runtime, seal } = this.#services;
    await runtime.change(row.sandbox_id, { env: envOf(row, seal), memory_mib: row.memory_mib }, held);
  }

  async #undo(held: HeldOperation, state: RuntimeState): Promise<void> {
    const { runtime, store } = this.#services;
    if (state !== 'absent' && state !== 'untracked') return this.#deletions.undo(held);
    await runtime.end(held.sandbox_id, held);
    await runtime.remove(held.sandbox_id, held);
    if (!(await store.write((tx) => store.drop(tx, held)))) throw held.lose();
  }

  /**
   * Undoes what this replica may have done in operations after it had lost them, each once their new owner is done: of a
   * sandbox that is gone everything is removed, whose id nobody uses again; another becomes what is recorded. Never rejects.
   */
  settle(): Promise<void>[] {
    const { lost } = this.#operations;
    return [...lost].map(async ([sandbox_id, held]) => {
      lost.delete(sandbox_id);
      const is_settled = await this.#settle(held).catch((error) => {
        this.#services.log.warn(
          { sandbox_id, reason: reasonOf(error) },
          'what was done in a lost operation could not be undone: it will be retried',
        );
        return false;
      });
      if (!is_settled && !lost.has(sandbox_id)) lost.set(sandbox_id, held);
    });
  }

  async #settle({ sandbox_id, number, operation }: HeldOperation): Promise<boolean> {
    const { runtime, store, log } = this.#services;
    const row = await store.find(store.db, sandbox_id, null);
    // Nobody has taken it over: it is resolved as any that was left.
    if (row?.operation_fence === number) return true;
    if (row !== null && row.operation !== null) return false;
    log.warn(
      { sandbox_id, operation },
      'an operation was lost to another replica: what was done late is undone',
    );
    if (row === null) {
      await runtime.end(sandbox_id);
      await runtime.remove(sandbox_id);
      return true;
    }
    const refusal = await this.#renew(sandbox_id);
    return refusal === null || refusal.refused === 'status';
  }

  /**
   * Brings a sandbox to its recorded status where it runs although it is recorded as paused, or the other way round: its
   * database was restored in the middle of an operation, or whoever has lost one has died before it could undo it. Does
   * nothing where an operation has begun since its row was read. Rejects where it cannot be asked.
   */
  async correct({ sandbox_id, status, operation_fence }: RecordedState): Promise<void> {
    const { runtime, log } = this.#services;
    const found = await runtime.inspect(sandbox_id);
    if (found === status || (found !== 'running' && found !== 'paused')) return;
    const refusal = await this.#renew(sandbox_id, operation_fence);
    if (refusal === null)
      log.warn({ sandbox_id, status, found }, 'a sandbox was brought to its recorded status');
  }

  /** Makes a sandbox all that is recorded, in an operation of its own; returns why that could not begin. */
  async #renew(sandbox_id: string, after_fence?: number): Promise<TransitionRefusal | null> {
    const { store, feed, clock } = this.#services;
    const lease = this.#operations.lease();
    const begun = await store.write(async (tx) => {
      const where = { sandbox_id, team_id: null, at: clock.moment(), after_fence };
      const changing = await store.beginTransition(tx, 'change', where, lease);
      if (!('refused' in changing)) await feed.expect(tx, sandbox_id);
      return changing;
    });
    if ('refused' in begun) return begun;
    await this.#operations.run(begun, lease, (held) => this.resolve(held, true));
    return null;
  }
}
