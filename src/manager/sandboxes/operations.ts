import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ApiError } from '../../contract/errors.ts';
import type { EventType } from '../../contract/events.ts';
import type { SandboxBandwidth, SandboxNetworkView } from '../../contract/network.ts';
import { DISK_DEFAULT_MIB } from '../../contract/sandboxes.ts';
import type { Runtime, RuntimeSpec } from '../../runtime/runtime.ts';
import { NO_BANDWIDTH } from '../config/bandwidth.ts';
import type { Transaction } from '../database/database.ts';
import { hasEnded } from '../database/replica.ts';
import type { Seal } from '../database/seal.ts';
import type { Operation } from '../database/tables.ts';
import type {
  Admission,
  DeletionOutbox,
  Lease,
  LeaseMetering,
  LifecycleFeed,
  TrafficMetering,
  WebhookTarget,
} from './ports.ts';
import type { SandboxMetrics } from './sandbox-metrics.ts';
import type { ManagedSandboxRow, OperationLease, SandboxStore, TransitionRefusal } from './sandbox-store.ts';

/** How long an operation belongs to its owner after the last renewal. */
const LEASE_MS = 15_000;

/** How long a commit may take to answer: until then a new operation of this replica is not yet in its own list. */
const ANSWER_MS = 3_000;

/** The stores, ports and tools of everything that changes sandboxes. Each part of it receives only the slice it uses. */
export interface SandboxServices {
  clock: Clock;
  log: Log;
  store: SandboxStore;
  runtime: Runtime;
  admission: Admission;
  metering: LeaseMetering;
  traffic: TrafficMetering;
  deletion_outbox: DeletionOutbox;
  feed: LifecycleFeed;
  seal: Seal;
  metrics: SandboxMetrics;
  /** This replica's name. */
  replica: string;
}

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
    return left_ms <= 0 || hasEnded(operation_owner ?? '');
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

/** The error for a refused transition: `not_found` or `conflict`. */
export function transitionError({ refused, status }: TransitionRefusal): ApiError {
  if (refused === 'not_found') return new ApiError('not_found', 'There is no such sandbox.');
  if (refused === 'busy') {
    return new ApiError('conflict', 'Another transition of the sandbox is in progress.', { status });
  }
  return new ApiError('conflict', `The sandbox is ${status}.`, { status });
}

/** The `conflict` for a sandbox whose runtime has died. */
export function runtimeLost(): ApiError {
  return new ApiError('conflict', "The sandbox's runtime has died; it can only be deleted.", {
    status: 'failed',
  });
}

/** The resources that a sandbox leases. */
export function leaseOf(row: ManagedSandboxRow): Lease {
  const { sandbox_id, team_id, memory_mib, cpu_millis, disk_mib } = row;
  return { sandbox_id, team_id, memory_mib, cpu_millis, disk_mib };
}

/** The contexts that sealed texts are bound to. */
export const sealContext = {
  secret: (sandbox_id: string) => `sandbox/${sandbox_id}/webhook_secret`,
  env: (sandbox_id: string) => `sandbox/${sandbox_id}/env`,
};

/** The environment of a sandbox's processes. */
export function envOf(row: ManagedSandboxRow, seal: Seal): Record<string, string> {
  return row.env_sealed === null
    ? {}
    : JSON.parse(seal.open(row.env_sealed, sealContext.env(row.sandbox_id)));
}

/** A sandbox's own bandwidth. */
export function ownBandwidth({ bandwidth }: Pick<ManagedSandboxRow, 'bandwidth'>): SandboxBandwidth {
  return bandwidth === null ? NO_BANDWIDTH : JSON.parse(bandwidth);
}

/** A sandbox's network, as in its record. */
export function networkOf({ network }: Pick<ManagedSandboxRow, 'network'>): SandboxNetworkView {
  const { mode = 'allow-all', enforced_by }: Partial<SandboxNetworkView> = JSON.parse(network ?? '{}');
  return { mode, enforced_by: mode === 'allow-all' ? null : (enforced_by ?? 'network_namespace') };
}

/** The globs of what a sandbox's watch leaves out. */
export function watchIgnoreOf({ watch_ignore }: Pick<ManagedSandboxRow, 'watch_ignore'>): string[] {
  return watch_ignore === null ? [] : JSON.parse(watch_ignore);
}

/** The kinds of events that a sandbox's webhook is sent; null: all of them. */
export function sentKindsOf({
  webhook_events,
}: Pick<ManagedSandboxRow, 'webhook_events'>): EventType[] | null {
  return webhook_events === null ? null : JSON.parse(webhook_events);
}

/** Where a sandbox's events are delivered; null if it has no webhook. */
export function webhookTargetOf(row: ManagedSandboxRow, seal: Seal): WebhookTarget | null {
  const { sandbox_id, team_id, webhook_url, webhook_secret_sealed } = row;
  if (webhook_url === null) return null;
  const webhook_secret =
    webhook_secret_sealed === null ? '' : seal.open(webhook_secret_sealed, sealContext.secret(sandbox_id));
  return { sandbox_id, team_id, webhook_url, webhook_secret };
}

/** The runtime's spec for a row. */
export function specOf(row: ManagedSandboxRow, seal: Seal): RuntimeSpec {
  const target = webhookTargetOf(row, seal);
  return {
    sandbox_id: row.sandbox_id,
    team_id: row.team_id,
    template_id: row.template_id,
    webhook: target && {
      url: target.webhook_url,
      secret: target.webhook_secret,
      watch_dir: row.watch_dir,
      watch_ignore: watchIgnoreOf(row),
      events: sentKindsOf(row),
    },
    env: envOf(row, seal),
    record_key: seal.recordKey(row.sandbox_id),
    memory_mib: row.memory_mib,
    cpu_millis: row.cpu_millis,
    disk_mib: row.disk_mib ?? DISK_DEFAULT_MIB,
    network_mode: networkOf(row).mode,
    bandwidth: ownBandwidth(row),
  };
}
