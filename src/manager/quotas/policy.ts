import { DIMENSIONS, type Dimension, factsOf, type QuotaPolicy } from '../../contract/quotas.ts';

/** The field of a policy that is invalid, and why. */
export interface PolicyFault {
  field: string;
  message: string;
}

/** The result of a check: a value, or what is wrong with it. */
export type Checked<Value> = { value: Value; fault?: undefined } | { value?: undefined; fault: PolicyFault };

const POLICY_KEYS = ['limit_value', 'interval_ms', 'burst_value'];

/** Checks the name of a dimension. */
export function asDimension(value: unknown): Checked<Dimension> {
  const dimension = DIMENSIONS.find((each) => each === value);
  if (dimension) return { value: dimension };
  return { fault: { field: 'dimension', message: `must be one of ${DIMENSIONS.join(', ')}` } };
}

/**
 * Checks a policy of `dimension` as given: `{limit_value, interval_ms?, burst_value?}`. A rate requires all three, a
 * capacity allows only the first. Source: contract section 7, PUT of a team's quota, and "Policies".
 */
export function asPolicy(dimension: Dimension, given: unknown): Checked<QuotaPolicy> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    return { fault: { field: 'body', message: 'must be an object' } };
  }
  const policy = given as Record<string, unknown>;
  const unknown = Object.keys(policy).find((key) => !POLICY_KEYS.includes(key));
  if (unknown !== undefined) return { fault: { field: unknown, message: 'is an unknown field' } };
  const is_rate = factsOf(dimension).kind === 'rate';
  const fault =
    numberFault(policy, 'limit_value', 0) ??
    (is_rate
      ? (numberFault(policy, 'interval_ms', 1) ?? numberFault(policy, 'burst_value', 0))
      : (absenceFault(policy, 'interval_ms') ?? absenceFault(policy, 'burst_value')));
  if (fault) return { fault };
  const { limit_value, interval_ms = null, burst_value = null } = policy as unknown as QuotaPolicy;
  return { value: { dimension, limit_value, interval_ms, burst_value } };
}

/** Checks the list under `default_team_quotas`; the field of a fault is a path such as `[1].limit_value`. */
export function asPolicies(given: unknown): Checked<QuotaPolicy[]> {
  if (!Array.isArray(given)) return { fault: { field: '', message: 'must be a list' } };
  const policies: QuotaPolicy[] = [];
  for (const [i, entry] of given.entries()) {
    const at = (field: string) => (field === 'body' ? `[${i}]` : `[${i}].${field}`);
    const { dimension: named, ...numbers } = (entry ?? {}) as Record<string, unknown>;
    const dimension = asDimension(named);
    if (dimension.fault) return { fault: { ...dimension.fault, field: at('dimension') } };
    if (policies.some((other) => other.dimension === dimension.value)) {
      return { fault: { field: at('dimension'), message: `${dimension.value} is listed twice` } };
    }
    const policy = asPolicy(dimension.value, numbers);
    if (policy.fault) {
      const message = `${policy.fault.message} (${dimension.value})`;
      return { fault: { field: at(policy.fault.field), message } };
    }
    policies.push(policy.value);
  }
  return { value: policies };
}

function numberFault(policy: Record<string, unknown>, field: string, least: number): PolicyFault | null {
  const value = policy[field];
  if (value === undefined || value === null) return { field, message: 'is required' };
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return null;
  return { field, message: `must be an integer from ${least} to ${Number.MAX_SAFE_INTEGER}` };
}

function absenceFault(policy: Record<string, unknown>, field: string): PolicyFault | null {
  return (policy[field] ?? null) === null ? null : { field, message: 'is only allowed for rate dimensions' };
}
