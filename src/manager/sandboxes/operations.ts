import { CLOCK_OFF_MS } from '../../contract/defaults.ts';
import type { Transaction } from '../database/database.ts';
import { hasReplicaEnded } from '../database/replica.ts';
import { HeldOperation } from './held-operation.ts';
import type { OperationInProgress } from './housekeeping-store.ts';
import type { ManagedSandboxRow, NumberedOperation, OperationLease, SandboxStore } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';

/** How long an operation belongs to its owner after the last renewal. */
const LEASE_MS = 15_000;

/** How long a commit may take to answer: until then a new operation of this replica is not yet in its own list. */
const ANSWER_MS = 3_000;

/** What Operations uses of the manager. */
type OperationServices = Pick<SandboxServices, 'clock' | 'store' | 'replica'>;

/** A lease that is about to be asked for. */
export interface NewLease extends OperationLease {
  /** When it ends at the earliest, by this machine's boot clock. */
  held_until_ms: number;
}

/** The operations that this replica is carrying out: it renews their leases, and waits for them when it stops. */
export class Operations {
  /** Those that it has lost, by their sandboxes, until what they have made is undone; see `OperationRecovery.settle`. */
  readonly lost = new Map<string, HeldOperation>();
  readonly #services: OperationServices;
  readonly #under_way = new Map<string, { held: HeldOperation; running: Promise<unknown> }>();

  constructor(services: OperationServices) {
    this.#services = services;
  }

  /** A lease for an operation that begins now, for 15 s. */
  lease(): NewLease {
    const { clock, replica } = this.#services;
    const held_until_ms = clock.boot().ms + LEASE_MS;
    return { owner: replica, until: clock.moment().in(LEASE_MS), held_until_ms };
  }

  /** Whether this replica is carrying out an operation of the sandbox that it has not lost. */
  isUnderWay(sandbox_id: string): boolean {
    return this.#under_way.get(sandbox_id)?.held.isHeld() === true;
  }

  /**
   * True for an operation that no replica is carrying out: its owner or its lease has ended, or this replica owns it
   * and could not resolve it.
   */
  isAbandoned({ sandbox_id, operation_owner, left_ms }: OperationInProgress): boolean {
    if (this.isUnderWay(sandbox_id)) return false;
    if (operation_owner === this.#services.replica) return left_ms <= LEASE_MS - ANSWER_MS;
    return left_ms <= 0 || hasReplicaEnded(operation_owner ?? '');
  }

  /** Cuts the leases of operations that end later than one that begins now: the database's clock went back. */
  async limitLeases(rows: OperationInProgress[]): Promise<void> {
    const late = rows.filter(({ left_ms }) => left_ms > LEASE_MS + CLOCK_OFF_MS);
    for (const row of late) await this.#services.store.limitLease(row, this.lease());
  }

  /** Runs `work` while the lease of a sandbox's operation, which was given just now, is renewed. */
  async run<Result>(
    operation: NumberedOperation,
    { held_until_ms }: NewLease,
    work: (held: HeldOperation) => Promise<Result>,
  ): Promise<Result> {
    const { sandbox_id } = operation;
    const held = new HeldOperation(operation, this.#services.clock, held_until_ms);
    const entry = { held, running: work(held) };
    this.#under_way.set(sandbox_id, entry);
    try {
      return await entry.running;
    } finally {
      if (this.#under_way.get(sandbox_id) === entry) this.#under_way.delete(sandbox_id);
      if (held.is_lost) this.lost.set(sandbox_id, held);
    }
  }

  /** Renews the leases of all operations in progress. */
  async renew(): Promise<void> {
    const lease = this.lease();
    const ids = [...this.#under_way].flatMap(([sandbox_id, { held }]) => (held.is_lost ? [] : [sandbox_id]));
    for (const { sandbox_id, operation_fence } of await this.#services.store.renew(ids, lease)) {
      this.#under_way.get(sandbox_id)?.held.renewed(operation_fence, lease.held_until_ms);
    }
  }

  /** Resolves when no operation is in progress. */
  async drained(): Promise<void> {
    await Promise.allSettled([...this.#under_way.values()].map(({ running }) => running));
  }

  /** Throws `unavailable` if another replica has taken an operation over, which none can before the transaction ends. */
  async confirm(tx: Transaction, held: HeldOperation): Promise<void> {
    if (!(await this.#services.store.isHeld(tx, held))) throw held.lose();
  }

  /** Ends an operation; throws `unavailable` if another replica has taken it over meanwhile. */
  async endOperation(
    tx: Transaction,
    held: HeldOperation,
    changes: Parameters<SandboxStore['endOperation']>[2],
  ): Promise<ManagedSandboxRow> {
    const row = await this.#services.store.endOperation(tx, held, changes);
    if (!row) throw held.lose();
    return row;
  }
}
