import { FieldError, invalidField } from '../../contract/errors.ts';
import { isTeamId, TEAM_ID_SHAPE } from '../../contract/ids.ts';
import type { NetworkState } from '../../contract/network.ts';
import type { PolicyStatus, QuotaStatus } from '../../contract/quotas.ts';
import type { Dimension } from '../../contract/words.ts';
import { asDimension, asPolicy } from '../quotas/policy.ts';
import type { QuotaPolicies } from '../quotas/quota-policies.ts';
import { quotaStatus, quotaStatuses } from '../quotas/quota-status.ts';
import type { QuotaStore } from '../quotas/quota-store.ts';
import type { RateCharges } from '../quotas/rate-charges.ts';
import { callerOf } from './auth.ts';
import type { ApiHandlers } from './routes.ts';

/** What the quota routes need. */
export interface QuotaRouteParts {
  store: QuotaStore;
  policies: QuotaPolicies;
  /** What decides on rates, and whether requests pass without it. */
  charges: Pick<RateCharges, 'is_open'>;
  /** How the network of sandboxes works now. */
  network(): NetworkState;
  /** Called after a change of a team's policies. */
  onPolicyChange(): void;
}

/** The routes that show a team's quotas and let operators change them. Source: contract section 7, rows on quotas. */
export function quotaHandlers(parts: QuotaRouteParts) {
  const { store, policies } = parts;
  const isEnforced = ({ kind, unit }: PolicyStatus) =>
    (kind !== 'rate' || !parts.charges.is_open) &&
    (unit !== 'bytes' || parts.network().mode !== 'host-unmetered');
  const shown = (status: PolicyStatus): QuotaStatus => ({ ...status, enforced: isEnforced(status) });
  const statusOf = async (team_id: string, dimension: Dimension) =>
    shown(await quotaStatus(store, team_id, dimension));
  const onChange = (team_id: string) => {
    policies.forget(team_id);
    parts.onPolicyChange();
  };
  return {
    async listQuotas({ request }) {
      const statuses = await quotaStatuses(store, callerOf(request).team_id);
      return statuses.map(shown);
    },

    async getQuota({ params, request }) {
      return statusOf(callerOf(request).team_id, dimensionOf(params.dimension));
    },

    async setTeamQuota({ params, body }) {
      const { team_id, dimension } = target(params);
      const { value, fault } = asPolicy(dimension, body);
      if (fault) throw new FieldError(fault);
      await store.set(team_id, value);
      onChange(team_id);
      return statusOf(team_id, dimension);
    },

    async unsetTeamQuota({ params }) {
      const { team_id, dimension } = target(params);
      await store.unset(team_id, dimension);
      onChange(team_id);
      return statusOf(team_id, dimension);
    },
  } satisfies Partial<ApiHandlers>;
}

function target({ team_id, dimension }: { team_id: string; dimension: string }) {
  if (!isTeamId(team_id)) throw invalidField('team_id', `must be ${TEAM_ID_SHAPE}`);
  return { team_id, dimension: dimensionOf(dimension) };
}

function dimensionOf(text: string): Dimension {
  const { value, fault } = asDimension(text);
  if (fault) throw new FieldError(fault);
  return value;
}
