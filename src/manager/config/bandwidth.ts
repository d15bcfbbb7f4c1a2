import type { Given } from '../../base/options.ts';
import { StartError } from '../../contract/errors.ts';
import { BURST_MIN_BYTES } from '../../contract/network.ts';
import type { SandboxBandwidth } from '../../contract/sandboxes.ts';

/** The keys of the config file that set the bandwidth of every sandbox whose claim does not say otherwise. */
export const BANDWIDTH_KEYS = [
  'egress_bandwidth_bytes_per_second',
  'ingress_bandwidth_bytes_per_second',
  'bandwidth_burst_bytes',
] as const satisfies (keyof SandboxBandwidth)[];

/** No limit of its own. */
export const NO_BANDWIDTH: SandboxBandwidth = {
  egress_bandwidth_bytes_per_second: 0,
  ingress_bandwidth_bytes_per_second: 0,
  bandwidth_burst_bytes: 0,
};

/** The bandwidth that the keys of a config file set. Throws StartError with the key's name. Source: contract section 7. */
export function defaultBandwidth(file: Given): SandboxBandwidth {
  const given = BANDWIDTH_KEYS.filter((key) => (file[key] ?? null) !== null);
  for (const key of given) {
    const value = file[key];
    if (Number.isSafeInteger(value) && (value as number) >= 0) continue;
    throw new StartError(`--config: ${key} must be an integer from 0 to ${Number.MAX_SAFE_INTEGER}`, 2);
  }
  return bandwidthOf(Object.fromEntries(given.map((key) => [key, file[key]])), NO_BANDWIDTH);
}

/** What is given, completed by `standard`; a burst that is shorter than the longest packet is raised to 64 KiB. */
export function bandwidthOf(given: Partial<SandboxBandwidth>, standard: SandboxBandwidth): SandboxBandwidth {
  const bandwidth = { ...standard, ...given };
  const burst = bandwidth.bandwidth_burst_bytes;
  return { ...bandwidth, bandwidth_burst_bytes: burst === 0 ? 0 : Math.max(BURST_MIN_BYTES, burst) };
}

/** Whether any direction is limited. */
export function isLimited(bandwidth: SandboxBandwidth): boolean {
  return bandwidth.egress_bandwidth_bytes_per_second > 0 || bandwidth.ingress_bandwidth_bytes_per_second > 0;
}
