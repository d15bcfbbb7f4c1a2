import { type Static, Type } from 'typebox';
import { type HttpApp, success } from '../../base/http/app.ts';
import { FieldError, invalidField } from '../../contract/errors.ts';
import type { NetworkState } from '../../contract/network.ts';
import {
  DIMENSION_KINDS,
  DIMENSIONS,
  type Dimension,
  type PolicyStatus,
  type QuotaStatus,
} from '../../contract/quotas.ts';
import { namedObject, orNull } from '../../contract/schema/field.ts';
import { integerFrom, NoQuery } from '../../contract/schema/query.ts';
import { isTeamId, TEAM_ID_SHAPE } from '../../contract/tokens.ts';
import { asDimension, asPolicy, PolicyBody } from '../quotas/policy.ts';
import type { QuotaPolicies } from '../quotas/quota-policies.ts';
import { quotaStatus, quotaStatuses } from '../quotas/quota-status.ts';
import type { QuotaStore } from '../quotas/quota-store.ts';
import type { RateCharges } from '../quotas/rate-charges.ts';
import { callerOf } from './auth.ts';

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

const Whole = integerFrom(0, Number.MAX_SAFE_INTEGER);
const OptionalWhole = orNull(Whole);
const OptionalInterval = orNull(integerFrom(1, Number.MAX_SAFE_INTEGER));

const QuotaData = namedObject('Quota', {
  team_id: Type.String(),
  dimension: Type.Enum(DIMENSIONS, { title: 'Dimension' }),
  kind: Type.Enum(DIMENSION_KINDS),
  limit_value: OptionalWhole,
  interval_ms: OptionalInterval,
  burst_value: OptionalWhole,
  current: OptionalWhole,
  remaining: OptionalWhole,
  unlimited: Type.Boolean(),
  unit: Type.Enum(['count', 'claims', 'requests', 'bytes']),
  source: Type.Enum(['team_override', 'region_default', 'unlimited']),
  enforced: Type.Boolean(),
});

const Params = Type.Object({ dimension: Type.String() });
const TeamParams = Type.Object({ team_id: Type.String(), dimension: Type.String() });

const tag = 'quotas' as const;
const EXAMPLE = { kind: 'rate', limit_value: 100, interval_ms: 1000, burst_value: 200 };
const PATH = '/api/v1/quotas';
const TEAM_PATH = '/internal/v1/teams/:team_id/quotas/:dimension';

/** Registers the routes that show a team's quotas and let operators change them. Source: contract section 7, rows on quotas. */
export function registerQuotaRoutes(app: HttpApp, parts: QuotaRouteParts): void {
  const { store, policies } = parts;
  const isEnforced = ({ kind, unit }: PolicyStatus) =>
    (kind !== 'rate' || !parts.charges.is_open) &&
    (unit !== 'bytes' || parts.network().mode !== 'host-unmetered');
  const shown = (status: PolicyStatus): QuotaStatus => ({ ...status, enforced: isEnforced(status) });
  const statusOf = async (team_id: string, dimension: Dimension) =>
    success(shown(await quotaStatus(store, team_id, dimension)));
  const onChange = (team_id: string) => {
    policies.forget(team_id);
    parts.onPolicyChange();
  };
  const reading = (
    operation_id: string,
    summary: string,
    data: typeof QuotaData | ReturnType<typeof Type.Array>,
  ) => ({
    config: { scope: 'quota:read' as const, doc: { operation_id, tag, summary, data } },
  });
  const changing = (operation_id: string, summary: string) => ({
    config: {
      scope: 'admin' as const,
      doc: { operation_id, tag, summary, data: QuotaData, example: EXAMPLE },
    },
  });

  const list = {
    ...reading('listQuotas', "List the team's quotas", Type.Array(QuotaData)),
    schema: { querystring: NoQuery },
  };
  app.get(PATH, list, async (request) => {
    const statuses = await quotaStatuses(store, callerOf(request).team_id);
    return success(statuses.map(shown));
  });

  app.get(
    `${PATH}/:dimension`,
    {
      ...reading('getQuota', "Get one of the team's quotas", QuotaData),
      schema: { params: Params, querystring: NoQuery },
    },
    async (request) => {
      return statusOf(callerOf(request).team_id, dimensionOf(request.params.dimension));
    },
  );

  app.put(
    TEAM_PATH,
    {
      ...changing('setTeamQuota', "Override a team's quota"),
      schema: { params: TeamParams, body: PolicyBody },
    },
    async (request) => {
      const { team_id, dimension } = target(request.params);
      const { value, fault } = asPolicy(dimension, request.body);
      if (fault) throw new FieldError(fault);
      await store.set(team_id, value);
      onChange(team_id);
      return statusOf(team_id, dimension);
    },
  );

  const removal = {
    ...changing('unsetTeamQuota', "Remove a team's override"),
    schema: { params: TeamParams },
  };
  app.delete(TEAM_PATH, removal, async (request) => {
    const { team_id, dimension } = target(request.params);
    await store.unset(team_id, dimension);
    onChange(team_id);
    return statusOf(team_id, dimension);
  });
}

function target({ team_id, dimension }: Static<typeof TeamParams>): {
  team_id: string;
  dimension: Dimension;
} {
  if (!isTeamId(team_id)) throw invalidField('team_id', `must be ${TEAM_ID_SHAPE}`);
  return { team_id, dimension: dimensionOf(dimension) };
}

function dimensionOf(text: string): Dimension {
  const { value, fault } = asDimension(text);
  if (fault) throw new FieldError(fault);
  return value;
}
