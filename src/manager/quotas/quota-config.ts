import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import type { QuotaPolicy } from '../../contract/quotas.ts';
import type { ManagerConfig, QuotaKey } from '../config/config.ts';
import { asPolicies } from './policy.ts';

const LEGACY_INTERVAL_MS = 1_000;
const EGRESS = 'team_egress_bandwidth_bytes_per_second';
const INGRESS = 'team_ingress_bandwidth_bytes_per_second';
const BURST = 'team_bandwidth_burst_bytes';

/** The policies that a config asks for. */
export interface ConfiguredQuotas {
  /** `default_team_quotas`; null where the config has none. */
  listed: QuotaPolicy[] | null;
  /** What the legacy fields stand for. */
  legacy: QuotaPolicy[];
}

/** Checks them; throws StartError with the entry's name. Source: contract section 7, "Policies". */
export function configuredQuotas(given: ManagerConfig['quotas']): ConfiguredQuotas {
  const list = given.default_team_quotas ?? null;
  if (list === null) return { listed: null, legacy: legacyPolicies(given) };
  const { value, fault } = asPolicies(list);
  if (fault) throw new StartError(`--config: default_team_quotas${fault.field} ${fault.message}`, 2);
  return { listed: value, legacy: legacyPolicies(given) };
}

/** Without a burst of its own a bandwidth may be used up for one second at once. */
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
  throw new StartError(`--config: ${key} must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`, 2);
}

/** Says that legacy fields are old, and what became of them. */
export function warnOfLegacy(given: ManagerConfig['quotas'], is_first: boolean, log: Log): void {
  const fields = [EGRESS, INGRESS, BURST].filter((key) => (given[key as QuotaKey] ?? null) !== null);
  if (fields.length === 0) return;
  const outcome = is_first ? 'they seed the network quotas this once' : 'they change nothing any more';
  log.warn({ fields }, `these fields are legacy: ${outcome}; use default_team_quotas`);
}
