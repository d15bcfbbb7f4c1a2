import type { RatePolicy } from '../contract/quotas.ts';
import type { SandboxBandwidth } from '../contract/sandboxes.ts';
import { DIRECTIONS, type PerDirection } from './directions.ts';
import type { ByteRate } from './meter/token-bucket.ts';
import type { TeamRate } from './meter/token-pool.ts';

/** A team's byte quotas; null is unlimited, and a `limit_value` of 0 blocks all traffic. */
export type TeamLimits = PerDirection<RatePolicy | null>;

/** The settings with which a sandbox is attached to the network. */
export interface AttachRequest {
  sandbox_id: string;
  team_id: string;
  bandwidth: SandboxBandwidth;
  team_limits: TeamLimits;
}

/** The sandbox's own limits in the meter's form. */
export function ownLimits(bandwidth: SandboxBandwidth): PerDirection<ByteRate | null> {
  const { egress_bandwidth_bytes_per_second, ingress_bandwidth_bytes_per_second } = bandwidth;
  const limit = (bytes_per_second: number) =>
    bytes_per_second === 0 ? null : { bytes_per_second, burst_bytes: bandwidth.bandwidth_burst_bytes };
  return {
    egress: limit(egress_bandwidth_bytes_per_second),
    ingress: limit(ingress_bandwidth_bytes_per_second),
  };
}

/** A team's limits in the meter's form; the authority keeps the rest of the policy. */
export function teamRates(limits: TeamLimits, version: number): PerDirection<TeamRate | null> {
  const rate = (policy: RatePolicy | null) => {
    if (policy === null) return null;
    const { limit_value, interval_ms } = policy;
    const exact = Math.floor((limit_value / interval_ms) * 1_000);
    return { bytes_per_second: limit_value === 0 ? 0 : Math.max(1, exact), version };
  };
  return { egress: rate(limits.egress), ingress: rate(limits.ingress) };
}

/** The directions that have a limit, whose packets must therefore be metered. */
export function meteredDirections(bandwidth: SandboxBandwidth, limits: TeamLimits): PerDirection<boolean> {
  const own = ownLimits(bandwidth);
  return {
    egress: own.egress !== null || limits.egress !== null,
    ingress: own.ingress !== null || limits.ingress !== null,
  };
}

/** Whether two policies are equal. */
export function sameLimits(a: TeamLimits, b: TeamLimits): boolean {
  return DIRECTIONS.every((direction) => {
    const [one, other] = [a[direction], b[direction]];
    if (one === null || other === null) return one === other;
    return (
      one.limit_value === other.limit_value &&
      one.interval_ms === other.interval_ms &&
      one.burst_value === other.burst_value
    );
  });
}
