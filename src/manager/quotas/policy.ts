import { problemOf } from '../../base/schema.ts';
import type { Problem } from '../../contract/errors.ts';
import { CapacityPolicy, type QuotaPolicy, RatePolicyData } from '../../contract/quotas.ts';
import { DIMENSIONS, type Dimension, type DimensionKind, factsOf } from '../../contract/words.ts';

/** The result of a check: a value, or what is wrong with it. */
export type Checked<Value> = { value: Value; fault?: undefined } | { value?: undefined; fault: Problem };

/** Checks the name of a dimension. */
export function asDimension(value: unknown): Checked<Dimension> {
  const dimension = DIMENSIONS.find((each) => each === value);
  if (dimension) return { value: dimension };
  return { fault: { field: 'dimension', problem: `must be one of ${DIMENSIONS.join(', ')}` } };
}

/**
 * Checks a policy of `dimension` as given: `{kind?, limit_value, interval_ms?, burst_value?}`. A rate requires all three
 * numbers, a capacity allows only the first; `kind` may say which it is. Source: contract section 7, PUT of a team's
 * quota, and "Policies".
 */
export function asPolicy(dimension: Dimension, given: unknown): Checked<QuotaPolicy> {
  const { kind } = factsOf(dimension);
  const policy = withoutNulls(given);
  const fault = problemOf(kind === 'rate' ? RatePolicyData : CapacityPolicy, policy);
  if (fault) return { fault: inWords(fault, kind) };
  const { kind: _said, ...numbers } = policy as { kind?: DimensionKind; limit_value: number };
  return { value: { dimension, interval_ms: null, burst_value: null, ...numbers } };
}

/** Checks the list under `default_team_quotas`; the field of a fault is a path such as `[1].limit_value`. */
export function asPolicies(given: unknown): Checked<QuotaPolicy[]> {
  if (!Array.isArray(given)) return { fault: { field: '', problem: 'must be a list' } };
  const policies: QuotaPolicy[] = [];
  for (const [i, entry] of given.entries()) {
    const at = (field: string) => (field === 'body' ? `[${i}]` : `[${i}].${field}`);
    const { dimension: named, ...numbers } = (entry ?? {}) as Record<string, unknown>;
    const dimension = asDimension(named);
    if (dimension.fault) return { fault: { ...dimension.fault, field: at('dimension') } };
    if (policies.some((other) => other.dimension === dimension.value)) {
      return { fault: { field: at('dimension'), problem: `${dimension.value} is listed twice` } };
    }
    const policy = asPolicy(dimension.value, numbers);
    if (policy.fault) {
      const problem = `${policy.fault.problem} (${dimension.value})`;
      return { fault: { field: at(policy.fault.field), problem } };
    }
    policies.push(policy.value);
  }
  return { value: policies };
}

function withoutNulls(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given;
  return Object.fromEntries(Object.entries(given).filter(([, value]) => (value ?? null) !== null));
}

function inWords({ field, problem }: Problem, kind: DimensionKind): Problem {
  if (field === 'kind') return { field, problem: `must be ${kind} for this dimension` };
  const is_of_rate =
    Object.hasOwn(RatePolicyData.properties, field) && !Object.hasOwn(CapacityPolicy.properties, field);
  if (kind === 'capacity' && is_of_rate) return { field, problem: 'is only allowed for rate dimensions' };
  return { field: field || 'body', problem };
}
