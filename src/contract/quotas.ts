/** Team Quotas: their dimensions, policies and status. Source: contract section 7; specification, "Limits". */

export type DimensionKind = 'capacity' | 'rate';

export type QuotaUnit = 'count' | 'claims' | 'requests' | 'bytes';

interface DimensionFacts {
  kind: DimensionKind;
  unit: QuotaUnit;
}

/** Every dimension, in the order of the specification. */
const DIMENSION_FACTS = {
  active_sandboxes: { kind: 'capacity', unit: 'count' },
  sandbox_claims: { kind: 'rate', unit: 'claims' },
  api_requests: { kind: 'rate', unit: 'requests' },
  network_egress_bytes: { kind: 'rate', unit: 'bytes' },
  network_ingress_bytes: { kind: 'rate', unit: 'bytes' },
} as const satisfies Record<string, DimensionFacts>;

export type Dimension = keyof typeof DIMENSION_FACTS;

export const DIMENSIONS = Object.keys(DIMENSION_FACTS) as Dimension[];

/** What a dimension limits, and in which unit. */
export function factsOf(dimension: Dimension): DimensionFacts {
  return DIMENSION_FACTS[dimension];
}

/** `limit_value` tokens every `interval_ms`, at most `burst_value` at once. All are whole, from 0 to 2⁵³ − 1. */
export interface RatePolicy {
  limit_value: number;
  /** From 1. */
  interval_ms: number;
  burst_value: number;
}

/** A policy of either kind; a capacity is at most `limit_value` at the same time, without interval and burst. */
export interface QuotaPolicy {
  dimension: Dimension;
  limit_value: number;
  interval_ms: number | null;
  burst_value: number | null;
}

export type QuotaSource = 'team_override' | 'region_default' | 'unlimited';

/** What `GET /api/v1/quotas` answers of one dimension; every key is always present. */
export interface QuotaStatus {
  team_id: string;
  dimension: Dimension;
  kind: DimensionKind;
  limit_value: number | null;
  interval_ms: number | null;
  burst_value: number | null;
  /** Capacity: what is in use. Rate: null, because tokens come and go. */
  current: number | null;
  /** Capacity with a limit: what is left, never below 0. */
  remaining: number | null;
  unlimited: boolean;
  unit: QuotaUnit;
  source: QuotaSource;
}

/** The `details` of a 429 `quota_exceeded`. */
export interface QuotaRefusal {
  dimension: Dimension;
  limit: number;
  /** Capacity: what is in use; rate: null. */
  current: number | null;
  requested: number;
  /** Rate: when to ask again; capacity: null. */
  retry_after_ms: number | null;
}
