import type { PolicyStatus } from '../../contract/quotas.ts';
import { DIMENSIONS, type Dimension, factsOf } from '../../contract/words.ts';
import type { HeldPolicy, QuotaStore } from './quota-store.ts';

/** The current status of every dimension for a team, read from the database, in the order of `DIMENSIONS`. Errors: `unavailable`. */
export async function quotaStatuses(store: QuotaStore, team_id: string): Promise<PolicyStatus[]> {
  const policies = await store.policiesOf(store.db, team_id);
  const active = await store.activeSandboxes(store.db, team_id);
  return DIMENSIONS.map((dimension) => statusOf(team_id, dimension, policies.get(dimension), active));
}

/** The current status of one dimension for a team. Errors: `unavailable`. */
export async function quotaStatus(
  store: QuotaStore,
  team_id: string,
  dimension: Dimension,
): Promise<PolicyStatus> {
  const statuses = await quotaStatuses(store, team_id);
  return statuses[DIMENSIONS.indexOf(dimension)] as PolicyStatus;
}

function statusOf(
  team_id: string,
  dimension: Dimension,
  policy: HeldPolicy | undefined,
  active: number,
): PolicyStatus {
  const { kind, unit } = factsOf(dimension);
  const current = kind === 'capacity' ? active : null;
  return {
    team_id,
    dimension,
    kind,
    limit_value: policy?.limit_value ?? null,
    interval_ms: policy?.interval_ms ?? null,
    burst_value: policy?.burst_value ?? null,
    current,
    remaining: policy && current !== null ? Math.max(0, policy.limit_value - current) : null,
    unlimited: policy === undefined,
    unit,
    source: policy?.source ?? 'unlimited',
  };
}
