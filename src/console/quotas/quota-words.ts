import type { QuotaStatus } from '../../contract/quotas.ts';
import { bytes, count, duration } from '../base/format.ts';

/** How a quota is put into words. */

const NAMES: Record<string, string> = {
  active_sandboxes: 'Active sandboxes',
  sandbox_claims: 'Claims',
  api_requests: 'API requests',
  network_egress_bytes: 'Network egress',
  network_ingress_bytes: 'Network ingress',
};

/** The name of a dimension. */
export function nameOf(dimension: string): string {
  return NAMES[dimension] ?? dimension;
}

/** A quantity in the unit of a dimension. */
export function quantityOf({ unit }: QuotaStatus, value: number): string {
  return unit === 'bytes' ? bytes(value) : count(value);
}

/** The limit of a dimension: `100`, `5 per s, 5 at once`, `unlimited`. */
export function limitOf(quota: QuotaStatus): string {
  const { limit_value, interval_ms, burst_value, unlimited } = quota;
  if (unlimited || limit_value === null) return 'unlimited';
  if (interval_ms === null) return quantityOf(quota, limit_value);
  const per = interval_ms === 1_000 ? 's' : duration(interval_ms);
  const burst = burst_value === null ? '' : `, at most ${quantityOf(quota, burst_value)} at once`;
  return `${quantityOf(quota, limit_value)} per ${per}${burst}`;
}

/** Where the limit comes from. */
export const SOURCES: Record<string, string> = {
  team_override: "the team's own",
  region_default: "the region's default",
  unlimited: 'nobody has set one',
};
