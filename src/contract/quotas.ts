import { type Static, Type } from 'typebox';
import { closedObject, integerFrom, namedObject, orNull, Text, SafeWhole as Whole } from './field.ts';
import { DIMENSION_KINDS, DIMENSIONS, type Dimension, QUOTA_UNITS } from './words.ts';

/** Quotas of a team: policies and status. Contract section 7, "Quota status" and "Policies". */

const OptionalWhole = orNull(Whole);
const Interval = integerFrom(1, Number.MAX_SAFE_INTEGER);

/** A policy that allows so much at once. */
export const CapacityPolicy = closedObject({
  kind: Type.Optional(Type.Literal('capacity')),
  limit_value: Whole,
});

/** A token bucket: `limit_value` tokens every `interval_ms`, at most `burst_value` at once. */
export const RatePolicyData = closedObject({
  kind: Type.Optional(Type.Literal('rate')),
  limit_value: Whole,
  interval_ms: Interval,
  burst_value: Whole,
});
export type RatePolicy = Omit<Static<typeof RatePolicyData>, 'kind'>;

/** A policy of either kind, as the body of a PUT; null is as good as absent. */
export const PolicyBody = namedObject('QuotaPolicy', {
  kind: Type.Optional(orNull(Type.Enum(DIMENSION_KINDS))),
  limit_value: Whole,
  interval_ms: Type.Optional(orNull(Interval)),
  burst_value: Type.Optional(OptionalWhole),
});

/** A policy of either kind. A capacity allows `limit_value` at once; its interval and burst are null. */
export interface QuotaPolicy {
  dimension: Dimension;
  limit_value: number;
  interval_ms: number | null;
  burst_value: number | null;
}

/** One dimension as `GET /api/v1/quotas` shows it; every key is always present. */
export const QuotaData = namedObject('Quota', {
  team_id: Text,
  dimension: Type.Enum(DIMENSIONS, { title: 'Dimension' }),
  kind: Type.Enum(DIMENSION_KINDS),
  limit_value: OptionalWhole,
  interval_ms: orNull(Interval),
  burst_value: OptionalWhole,
  // Capacity: what is in use. Rate: null, because the number changes all the time.
  current: OptionalWhole,
  // Capacity with a limit: what is left, never below 0.
  remaining: OptionalWhole,
  unlimited: Type.Boolean(),
  unit: Type.Enum(QUOTA_UNITS),
  // Where the policy that applies comes from.
  source: Type.Enum(['team_override', 'region_default', 'unlimited']),
  // False where nothing enforces it: the two network dimensions without a metered network.
  enforced: Type.Boolean(),
});
export type QuotaStatus = Static<typeof QuotaData>;

/** A dimension's status without what only a running manager knows. */
export type PolicyStatus = Omit<QuotaStatus, 'enforced'>;
