import type { Clock } from '../../base/clock.ts';
import type { HttpApp } from '../../base/http/app.ts';
import type { Log } from '../../base/log.ts';
import type { Metric } from '../../base/metrics.ts';
import { ApiError } from '../../contract/errors.ts';
import type { NetworkSources } from '../../runtime/networks/sandbox-networks.ts';
import type { SandboxNode } from '../../runtime/runtime.ts';
import type { ManagerConfig } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import { SandboxAdmission } from './admission.ts';
import { QuotaByteAuthority } from './byte-authority.ts';
import { LocalAuthority } from './local-authority.ts';
import { NodeCapacity, type UnrecordedUse } from './node-capacity.ts';
import { configuredQuotas, warnOfLegacy } from './quota-config.ts';
import { QuotaMetrics } from './quota-metrics.ts';
import { QuotaPolicies } from './quota-policies.ts';
import { QuotaStore } from './quota-store.ts';
import type { RateAuthority } from './rate-authority.ts';
import { quotaRefusalHeaders, RateCharges } from './rate-charges.ts';
import { RedisAuthority } from './redis-authority.ts';

interface QuotaParts {
  config: ManagerConfig;
  database: Database;
  /** The machine that sandboxes take their resources from; null without one. */
  node: SandboxNode | null;
  /** What is on it that no row knows. */
  unrecorded: UnrecordedUse;
  clock: Clock;
  log: Log;
}

/** The quotas of a manager: policies, admission of sandboxes, and charging of requests. */
export class Quotas {
  readonly store: QuotaStore;
  readonly policies: QuotaPolicies;
  readonly admission: SandboxAdmission;
  readonly charges: RateCharges;
  readonly node: NodeCapacity;
  readonly authority: RateAuthority;
  readonly #metrics: QuotaMetrics;

  /** Updates the region's policies from the configuration, and connects to the rate authority. Throws StartError; errors: `unavailable`. */
  static async open(parts: QuotaParts): Promise<Quotas> {
    const { config, database, clock, log } = parts;
    const { listed, legacy } = configuredQuotas(config.quotas);
    const store = new QuotaStore(database);
    const { is_first } = await store.reconcile(listed, legacy);
    warnOfLegacy(config.quotas, is_first, log);
    const authority =
      config.redis === null
        ? new LocalAuthority(clock)
        : await RedisAuthority.open({ url: config.redis, region_id: config.region, log, clock });
    const node = NodeCapacity.open(config, parts.node, store, parts.unrecorded);
    return new Quotas(parts, store, authority, node);
  }

  private constructor(
    { config, clock, log }: QuotaParts,
    store: QuotaStore,
    authority: RateAuthority,
    node: NodeCapacity,
  ) {
    const metrics = new QuotaMetrics();
    const policies = new QuotaPolicies(store, clock);
    this.store = store;
    this.policies = policies;
    this.admission = new SandboxAdmission(store, policies, node, metrics);
    this.charges = new RateCharges({
      policies,
      authority,
      metrics,
      clock,
      log,
      is_fail_open: config.quota_fail_open,
    });
    this.node = node;
    this.authority = authority;
    this.#metrics = metrics;
  }

  /** What the networks of sandboxes are limited by. */
  networkSources(): Omit<NetworkSources, 'isRecorded'> {
    const limitsOf = async (team_id: string) => ({
      egress: await this.policies.rateOf(team_id, 'network_egress_bytes'),
      ingress: await this.policies.rateOf(team_id, 'network_ingress_bytes'),
    });
    return { authority: new QuotaByteAuthority(this.authority), limitsOf };
  }

  /** The metrics of quotas, for the registry. */
  metrics(): Metric[] {
    return this.#metrics.metrics(() => this.authority.is_reachable);
  }

  /** The fields of `/readyz` on quotas: `rate_authority`, `rate_authority_reachable`. */
  facts(): Record<string, unknown> {
    const { kind, is_reachable } = this.authority;
    return { rate_authority: kind, rate_authority_reachable: is_reachable };
  }

  /** Disconnects from the rate authority. */
  close(): Promise<void> {
    return this.authority.close();
  }
}

/** Adds the rate limit headers to every response that is refused on a quota. */
export function explainRefusals(app: HttpApp): void {
  app.addHook('onError', async (_request, reply, error) => {
    if (error instanceof ApiError) quotaRefusalHeaders(error, reply);
  });
}
