import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import type { QuotaPolicy } from '../../contract/quotas.ts';
import type { ManagerConfig, QuotaKey } from '../config/config.ts';
import { asPolicies } from './policy.ts';

const LEGACY_INTERVAL_MS = 1_000;
const EGRESS = 'team_egress_bandwidth_bytes_per_second';
const INGRESS = 'team_ingress_bandwidth_bytes_per_second';
const BURST = 'team_bandwidth_burst_bytes';

/** The policies of a configuration. */
export interface ConfiguredQuotas {
  /** `default_team_quotas`; null if the configuration has none. */
  listed: QuotaPolicy[] | null;
  /** The policies that the legacy fields stand for. */
  legacy: QuotaPolicy[];
}

/** Checks the quotas of a configuration. Throws StartError with the name of the invalid entry. Source: contract section 7, "Policies". */
export function configuredQuotas(given: ManagerConfig['quotas']): ConfiguredQuotas {
  const list = given.default_team_quotas ?? null;
  if (list === null) return { listed: null, legacy: legacyPolicies(given) };
  const { value, fault } = asPolicies(list);
  if (fault) throw new StartError(`--config: default_team_quotas${fault.field} ${fault.problem}`, 2);
  return { listed: value, legacy: legacyPolicies(given) };
}

/** Without a configured burst, the burst is what the bandwidth allows in one second. */
function legacyPolicies(given: ManagerConfig['quotas']): QuotaPolicy[] {
  const burst = legacyNumber(given, BURST);
  return (
    [
      ['network_egress_bytes', legacyNumber(given, EGRESS)],
      ['network_ingress_bytes', legacyNumber(given, INGRESS)],
    ] as const
  ).flatMap(([dimension, limit_value]) =>
    limit_value === null
      ? []
      : [{ dimension, limit_value, interval_ms: LEGACY_INTERVAL_MS, burst_value: burst ?? limit_value }],
  );
}

function legacyNumber(given: ManagerConfig['quotas'], key: QuotaKey): number | null {
  const value = given[key] ?? null;
  if (value === null || (Number.isSafeInteger(value) && (value as number) >= 0))
    return value as number | null;
  throw new StartError(`--config: ${key} must be an integer from 0 to ${Number.MAX_SAFE_INTEGER}`, 2);
}

/** Logs which legacy fields are set, and whether they have an effect. `is_first`: the first start on this database. */
export function warnOfLegacy(given: ManagerConfig['quotas'], is_first: boolean, log: Log): void {
  const fields = [EGRESS, INGRESS, BURST].filter((key) => (given[key as QuotaKey] ?? null) !== null);
  if (fields.length === 0) return;
  const outcome = is_first
    ? 'they set the network quotas at this first start'
    : 'they no longer have an effect';
  log.warn({ fields }, `these fields are legacy: ${outcome}; use default_team_quotas`);
}
