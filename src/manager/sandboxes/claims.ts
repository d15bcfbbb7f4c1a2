import { newId } from '../../base/ids.ts';
import { ApiError, FieldError, invalidField } from '../../contract/errors.ts';
import type { Caller } from '../../contract/tokens.ts';
import type { ManagedStatus, Persistence } from '../../contract/words.ts';
import type { HeldOperation } from './held-operation.ts';
import type { IdempotencyStore } from './idempotency-store.ts';
import type { OperationRecovery } from './operation-recovery.ts';
import type { Operations } from './operations.ts';
import type { ClaimRequest } from './requests.ts';
import { after, leaseOf, sealedEnv, specOf, webhookColumns } from './sandbox-row.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';

const KEY_KEPT_MS = 24 * 60 * 60 * 1000;
const NODE = 'local';

/** The answer to a claim. Source: contract section 7, POST `/api/v1/sandboxes`. */
export interface Claimed {
  sandbox_id: string;
  status: ManagedStatus;
  pod_name: string;
  /** The same as `pod_name`. */
  runtime_id: string;
  persistence: Persistence | null;
  template: string;
  cluster_id: string;
}

/** What Claims uses of the manager. */
type ClaimServices = Pick<
  SandboxServices,
  | 'clock'
  | 'store'
  | 'runtime'
  | 'admission'
  | 'metering'
  | 'traffic'
  | 'deletion_outbox'
  | 'feed'
  | 'seal'
  | 'metrics'
>;

/** Claims sandboxes. Source: contract section 7, POST `/api/v1/sandboxes`. */
export class Claims {
  readonly #services: ClaimServices;
  readonly #operations: Operations;
  readonly #operation_recovery: OperationRecovery;
  readonly #keys: IdempotencyStore;

  constructor(
    services: ClaimServices,
    operations: Operations,
    operation_recovery: OperationRecovery,
    keys: IdempotencyStore,
  ) {
    this.#services = services;
    this.#operations = operations;
    this.#operation_recovery = operation_recovery;
    this.#keys = keys;
  }

  /**
   * Claims a sandbox; resolves when it runs. A `key` that was used before with the same request returns the first
   * answer. Throws `conflict` (key), `quota_exceeded`, `capacity_exhausted`, `outbox_full`, and what the runtime throws.
   */
  async claim(caller: Caller, request: ClaimRequest, key: string | null): Promise<Claimed> {
    const { claims } = this.#services.metrics;
    try {
      const claimed = await this.#claim(caller, request, key);
      claims.add(['claimed']);
      return claimed;
    } catch (error) {
      claims.add([error instanceof ApiError ? error.code : 'internal_error']);
      throw error;
    }
  }

  async #claim(caller: Caller, request: ClaimRequest, key: string | null): Promise<Claimed> {
    const { clock, store, admission, deletion_outbox, feed } = this.#services;
    const lease = this.#operations.lease();
    const row = this.#rowOf(caller, request);
    const claim = key === null ? null : { team_id: caller.team_id, key, body_hash: request.hash };
    return this.#operations.run(row, lease, async (held) => {
      const before = await store.write(async (tx) => {
        // Serialises claims with the same key.
        if (claim) await store.lockTeam(tx, caller.team_id);
        const known = claim && (await this.#keys.lookUp(tx, claim, clock.wallMs() - KEY_KEPT_MS));
        if (known?.outcome === 'answered') return known.answer as Claimed;
        if (known) refuseKnown(known.outcome);
        if (row.webhook_url !== null) await deletion_outbox.checkCapacity(tx, caller.team_id);
        await admission.admit(tx, leaseOf(row));
        await store.insert(tx, row, lease);
        await feed.expect(tx, row.sandbox_id);
        if (claim) await this.#keys.reserve(tx, claim, row.sandbox_id, row.created_at_ms);
        return null;
      });
      return before ?? (await this.#create(row, held));
    });
  }

  async #create(row: ManagedSandboxRow, held: HeldOperation): Promise<Claimed> {
    const { runtime, seal, store, metering, traffic, clock, metrics, feed } = this.#services;
    const { sandbox_id } = row;
    try {
      const { pod_name, persistence } = await runtime.create(specOf(row, seal), held);
      const reading = await feed.read(row);
      const answer: Claimed = {
        sandbox_id,
        status: 'running',
        pod_name,
        runtime_id: pod_name,
        persistence,
        template: row.template_id,
        cluster_id: runtime.cluster_id,
      };
      await store.write(async (tx) => {
        const at = clock.moment();
        const running = await this.#operations.endOperation(tx, held, {
          status: 'running',
          pod_name,
          persistence,
          claimed_at_ms: at.now,
          updated_at_ms: at.now,
          expires_at_ms: after(at, row.ttl_s),
          hard_expires_at_ms: after(at, row.hard_ttl_s),
          idle_expires_at_ms: after(at, row.idle_ttl_s),
        });
        await metering.began(tx, leaseOf(running), running.updated_at_ms);
        await traffic.began(tx, running, running.updated_at_ms);
        await feed.store(tx, row, reading);
        await this.#keys.storeAnswer(tx, sandbox_id, 201, answer);
      });
      metrics.transitions.add(['claim', 'done']);
      return answer;
    } catch (error) {
      metrics.transitions.add(['claim', 'failed']);
      throw (await this.#operation_recovery.resolve(held)) ?? namedAsGiven(error);
    }
  }

  #rowOf(caller: Caller, request: ClaimRequest): ManagedSandboxRow {
    const { clock, seal } = this.#services;
    const { webhook, env_vars, resources } = request;
    const now_ms = clock.wallMs();
    const sandbox_id = newId('sbx_', now_ms);
    return {
      sandbox_id,
      team_id: caller.team_id,
      template_id: request.template,
      status: 'starting',
      operation: 'claiming',
      operation_owner: null,
      operation_until_ms: null,
      operation_fence: now_ms,
      auto_resume: request.auto_resume ? 1 : 0,
      pod_name: null,
      persistence: null,
      runtime_generation: 1,
      memory_mib: request.memory_mib,
      cpu_millis: request.cpu_millis,
      held_mib: null,
      resources: JSON.stringify(resources),
      metadata: JSON.stringify(request.metadata),
      disk_mib: request.disk_mib,
      bandwidth: JSON.stringify(request.bandwidth),
      network: JSON.stringify(request.network),
      ...webhookColumns(webhook, sandbox_id, seal),
      ...sealedEnv(env_vars, sandbox_id, seal),
      ttl_s: request.ttl,
      hard_ttl_s: request.hard_ttl,
      idle_ttl_s: request.idle_ttl,
      expires_at_ms: null,
      hard_expires_at_ms: null,
      idle_expires_at_ms: null,
      claimed_at_ms: null,
      created_at_ms: now_ms,
      updated_at_ms: now_ms,
      deleted_at_ms: null,
      node: NODE,
    };
  }
}

function refuseKnown(outcome: 'new' | 'under_way' | 'conflict'): void {
  if (outcome === 'under_way') {
    throw new ApiError('conflict', 'A claim with this Idempotency-Key is still in progress.');
  }
  if (outcome === 'conflict') {
    throw new ApiError('conflict', 'Idempotency-Key: was already used with a different body.');
  }
}

/** The fields of a claim or fork from which those of a runtime's spec come. */
const CLAIM_FIELDS: Record<string, string> = { webhook: 'config.webhook', env: 'config.env_vars' };

/** Names a field as the caller did: the runtime names those of its spec. */
export function namedAsGiven(error: unknown): unknown {
  if (!(error instanceof FieldError)) return error;
  const [first = '', ...rest] = error.field.split('.');
  return invalidField([CLAIM_FIELDS[first] ?? first, ...rest].join('.'), error.problem);
}
