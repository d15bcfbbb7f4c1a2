import { newId } from '../../base/ids.ts';
import { DISK_DEFAULT_MIB } from '../../contract/defaults.ts';
import type { RuntimeChange } from '../../runtime/runtime.ts';
import type { Moment } from '../database/database-clock-store.ts';
import { namedAsGiven } from './claims.ts';
import type { HeldOperation } from './held-operation.ts';
import type { OperationRecovery } from './operation-recovery.ts';
import type { Operations } from './operations.ts';
import type { LifecycleReading } from './ports.ts';
import type { ForkRequest } from './requests.ts';
import { after, heldBy, sealContext, specOf, webhookColumns } from './sandbox-row.ts';
import type { ManagedSandboxRow, SandboxChanges } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';
import type { SandboxRef, TransitionRunner } from './transition-runner.ts';

/** What Forks uses of the manager. */
type ForkServices = Pick<
  SandboxServices,
  'clock' | 'store' | 'runtime' | 'admission' | 'traffic' | 'deletion_outbox' | 'feed' | 'seal'
>;

/** Forks sandboxes. Source: contract section 7, POST `…/{id}/fork`. */
export class Forks {
  readonly #services: ForkServices;
  readonly #operations: Operations;
  readonly #operation_recovery: OperationRecovery;
  readonly #transitions: TransitionRunner;

  constructor(
    services: ForkServices,
    operations: Operations,
    operation_recovery: OperationRecovery,
    transitions: TransitionRunner,
  ) {
    this.#services = services;
    this.#operations = operations;
    this.#operation_recovery = operation_recovery;
    this.#transitions = transitions;
  }

  /**
   * Copies a running or paused sandbox; resolves with the child, which is paused. Throws `not_found`, `conflict`,
   * `quota_exceeded`, `capacity_exhausted`, `outbox_full`, and what the runtime throws.
   */
  async fork(named: SandboxRef, given: ForkRequest): Promise<ManagedSandboxRow> {
    const { store, clock, runtime, seal, admission, traffic, deletion_outbox, feed } = this.#services;
    const began_ms = clock.wallMs();
    const child_id = newId('sbx_', began_ms);
    let child: ManagedSandboxRow | null = null;
    let is_begun = false;
    let reading: LifecycleReading | null = null;
    const copy = async (
      source: ManagedSandboxRow,
      held: HeldOperation,
      held_child: HeldOperation,
    ): Promise<RuntimeChange> => {
      is_begun = true;
      const made = child as ManagedSandboxRow;
      const copied = await runtime.fork(source.sandbox_id, specOf(made, seal), {
        source: held,
        child: held_child,
      });
      if (copied.outcome !== 'created') return copied.outcome;
      child = { ...made, pod_name: copied.pod_name, persistence: copied.persistence };
      reading = await feed.read(child);
      return 'done';
    };
    const lease = this.#operations.lease();
    const copying = { sandbox_id: child_id, operation: 'copying', operation_fence: began_ms } as const;
    await this.#operations.run(copying, lease, async (held_child) => {
      try {
        await this.#transitions.run(named, 'fork', {
          onBegin: async (tx, source) => {
            child = { ...this.#childOf(source, child_id, given), operation_fence: began_ms };
            if (child.webhook_url !== null) await deletion_outbox.checkCapacity(tx, child.team_id);
            await admission.admitCopy(tx, heldBy(child));
            await store.insert(tx, child);
            await feed.expect(tx, child_id);
          },
          carryOut: (source, held) => copy(source, held, held_child),
          changes: () => ({}),
          onEnd: async (tx) => {
            const held_mib = runtime.heldMib(child_id);
            const changes = { ...changesOfCopy(child, clock.moment()), held_mib };
            child = await this.#operations.endOperation(tx, held_child, changes);
            await traffic.began(tx, child, child.updated_at_ms);
            await feed.store(tx, child, reading as LifecycleReading);
          },
        });
      } catch (error) {
        // Of one that was refused, nothing is recorded.
        throw (is_begun && (await this.#operation_recovery.resolve(held_child))) || namedAsGiven(error);
      }
    });
    return child as unknown as ManagedSandboxRow;
  }

  /** The child's row: the source's environment, resources and, unless another is given, webhook under its own identity. */
  #childOf(
    source: ManagedSandboxRow,
    sandbox_id: string,
    { ttl, hard_ttl, webhook }: ForkRequest,
  ): ManagedSandboxRow {
    const { clock, seal } = this.#services;
    const now_ms = clock.wallMs();
    const moved = (sealed: string | null, context: (id: string) => string) =>
      sealed && seal.seal(seal.open(sealed, context(source.sandbox_id)), context(sandbox_id));
    return {
      ...source,
      sandbox_id,
      status: 'paused',
      operation: 'copying',
      pod_name: null,
      persistence: null,
      held_mib: this.#services.runtime.heldMib(sandbox_id),
      runtime_generation: 1,
      disk_mib: source.disk_mib ?? DISK_DEFAULT_MIB,
      webhook_secret_sealed: moved(source.webhook_secret_sealed, sealContext.secret),
      ...(webhook && webhookColumns(webhook, sandbox_id, seal)),
      env_sealed: moved(source.env_sealed, sealContext.env),
      env_names_sealed: moved(source.env_names_sealed, sealContext.env_names),
      ttl_s: ttl ?? source.ttl_s,
      hard_ttl_s: hard_ttl ?? source.hard_ttl_s,
      expires_at_ms: null,
      hard_expires_at_ms: null,
      idle_expires_at_ms: null,
      claimed_at_ms: null,
      created_at_ms: now_ms,
      updated_at_ms: now_ms,
    };
  }
}

function changesOfCopy(child: ManagedSandboxRow | null, at: Moment): SandboxChanges {
  return {
    pod_name: child?.pod_name ?? null,
    persistence: child?.persistence ?? null,
    claimed_at_ms: at.now,
    updated_at_ms: at.now,
    expires_at_ms: after(at, child?.ttl_s ?? 0),
    hard_expires_at_ms: after(at, child?.hard_ttl_s ?? 0),
  };
}
