import { ApiError } from '../../contract/errors.ts';
import type { Transaction } from '../database/database.ts';
import { hasReplicaEnded } from '../database/replica.ts';
import type { Operation } from '../database/tables.ts';
import type { ManagedSandboxRow, OperationLease, SandboxStore } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';

/** How long an operation belongs to its owner after the last renewal. */
const LEASE_MS = 15_000;

/** How long a commit may take to answer: until then a new operation of this replica is not yet in its own list. */
const ANSWER_MS = 3_000;

/** What Operations uses of the manager. */
type OperationServices = Pick<SandboxServices, 'clock' | 'store' | 'replica'>;

/** The operations that this replica is carrying out: it renews their leases, and waits for them when it stops. */
export class Operations {
  readonly #services: OperationServices;
  readonly #under_way = new Map<string, Promise<unknown>>();

  constructor(services: OperationServices) {
    this.#services = services;
  }

  /** A lease for an operation that begins now, for 15 s. */
  lease(): OperationLease {
    return { owner: this.#services.replica, until_ms: this.#services.clock.wallMs() + LEASE_MS };
  }

  /** Whether this replica is carrying out an operation of the sandbox. */
  isUnderWay(sandbox_id: string): boolean {
    return this.#under_way.has(sandbox_id);
  }

  /**
   * True for an operation that no replica is carrying out: its owner or its lease has ended, or this replica owns it
   * and could not resolve it.
   */
  isAbandoned({ sandbox_id, operation_owner, operation_until_ms }: ManagedSandboxRow): boolean {
    if (this.isUnderWay(sandbox_id)) return false;
    const left_ms = (operation_until_ms ?? 0) - this.#services.clock.wallMs();
    if (operation_owner === this.#services.replica) return left_ms <= LEASE_MS - ANSWER_MS;
    return left_ms <= 0 || hasReplicaEnded(operation_owner ?? '');
  }

  /** Runs `work` while the lease of the sandbox's operation is renewed. */
  async run<Result>(sandbox_id: string, work: () => Promise<Result>): Promise<Result> {
    const running = work();
    this.#under_way.set(sandbox_id, running);
    try {
      return await running;
    } finally {
      if (this.#under_way.get(sandbox_id) === running) this.#under_way.delete(sandbox_id);
    }
  }

  /** Renews the leases of all operations in progress. */
  async renew(): Promise<void> {
    await this.#services.store.renew([...this.#under_way.keys()], this.lease());
  }

  /** Resolves when no operation is in progress. */
  async drained(): Promise<void> {
    await Promise.allSettled(this.#under_way.values());
  }

  /** Ends an operation; throws `unavailable` if another replica has taken it over meanwhile. */
  async endOperation(
    tx: Transaction,
    sandbox_id: string,
    operation: Operation,
    changes: Parameters<SandboxStore['endOperation']>[4],
  ): Promise<ManagedSandboxRow> {
    const { store, replica } = this.#services;
    const row = await store.endOperation(tx, sandbox_id, operation, replica, changes);
    if (row) return row;
    throw new ApiError('unavailable', 'The operation took too long, and another replica has taken it over.', {
      retry_after_s: 1,
    });
  }
}
