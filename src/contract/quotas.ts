/** Quotas of a team: dimensions, policies and status. Contract section 7, "Quota status" and "Policies". */

/** What a dimension limits: how much at once (`capacity`), or how much per time (`rate`). */
export type DimensionKind = 'capacity' | 'rate';

/** Every kind of dimension. */
export const DIMENSION_KINDS = ['capacity', 'rate'] as const satisfies DimensionKind[];

/** The unit of a dimension's numbers. */
export type QuotaUnit = 'count' | 'claims' | 'requests' | 'bytes';

interface DimensionFacts {
  kind: DimensionKind;
  unit: QuotaUnit;
}

/** Every dimension, in the order in which they are listed. */
const DIMENSION_FACTS = {
  active_sandboxes: { kind: 'capacity', unit: 'count' },
  sandbox_claims: { kind: 'rate', unit: 'claims' },
  api_requests: { kind: 'rate', unit: 'requests' },
  network_egress_bytes: { kind: 'rate', unit: 'bytes' },
  network_ingress_bytes: { kind: 'rate', unit: 'bytes' },
} as const satisfies Record<string, DimensionFacts>;

/** The name of a dimension. */
export type Dimension = keyof typeof DIMENSION_FACTS;

/** Every dimension, in the order in which they are listed. */
export const DIMENSIONS = Object.keys(DIMENSION_FACTS) as Dimension[];

/** The kind and unit of a dimension. */
export function factsOf(dimension: Dimension): DimensionFacts {
  return DIMENSION_FACTS[dimension];
}

/**
 * A token bucket: `limit_value` tokens every `interval_ms`, at most `burst_value` at once. All are integers from 0 to
 * 2⁵³ − 1, `interval_ms` from 1.
 */
export interface RatePolicy {
  limit_value: number;
  interval_ms: number;
  burst_value: number;
}

/** A policy of either kind. A capacity allows `limit_value` at once; its interval and burst are null. */
export interface QuotaPolicy {
  dimension: Dimension;
  limit_value: number;
  interval_ms: number | null;
  burst_value: number | null;
}

/** Where the policy that applies comes from. */
export type QuotaSource = 'team_override' | 'region_default' | 'unlimited';

/** One dimension as `GET /api/v1/quotas` shows it; every key is always present. */
export interface QuotaStatus {
  team_id: string;
  dimension: Dimension;
  kind: DimensionKind;
  limit_value: number | null;
  interval_ms: number | null;
  burst_value: number | null;
  /** Capacity: what is in use. Rate: null, because the number changes all the time. */
  current: number | null;
  /** Capacity with a limit: what is left, never below 0. */
  remaining: number | null;
  unlimited: boolean;
  unit: QuotaUnit;
  source: QuotaSource;
  /** False where nothing enforces it: the two network dimensions without a metered network. */
  enforced: boolean;
}

/** A dimension's status without what only a running manager knows. */
export type PolicyStatus = Omit<QuotaStatus, 'enforced'>;

/** The `details` of a `quota_exceeded` (429). Contract section 7, "Errors of the manager". */
export interface QuotaRefusal {
  dimension: Dimension;
  limit: number;
  /** Capacity: what is in use; rate: null. */
  current: number | null;
  requested: number;
  /** Rate: how long to wait before the next request; capacity: null. */
  retry_after_ms: number | null;
}
