import type { DirectionUsage, NetworkUsage } from '../../contract/sandboxes.ts';
import { DIRECTIONS, type PerDirection } from '../../network/directions.ts';
import type { LaneCount } from '../../network/meter/counts.ts';
import type { KernelCount } from '../../network/namespace/kernel-counters.ts';

/** What only a meter counts, not the kernel. */
export type MeteredCounts = PerDirection<Omit<DirectionUsage, 'passed_bytes' | 'passed_packets'>>;

/** Nothing was dropped, and nothing had to wait. */
export const NO_COUNTS: MeteredCounts = {
  egress: { dropped_bytes: 0, dropped_packets: 0, waited_ms: 0 },
  ingress: { dropped_bytes: 0, dropped_packets: 0, waited_ms: 0 },
};

/** Nothing has passed. */
export const NOTHING_PASSED: PerDirection<KernelCount> = {
  egress: { bytes: 0, packets: 0 },
  ingress: { bytes: 0, packets: 0 },
};

/** What this meter has counted, and before it another. */
export function addCounts(before: MeteredCounts, counts: PerDirection<LaneCount>): MeteredCounts {
  return perDirection((direction) => {
    const { dropped_bytes, dropped_packets, waited_us } = counts[direction];
    const { dropped_bytes: bytes, dropped_packets: packets, waited_ms } = before[direction];
    return {
      dropped_bytes: dropped_bytes + bytes,
      dropped_packets: dropped_packets + packets,
      waited_ms: Math.floor(waited_us / 1_000) + waited_ms,
    };
  });
}

/** The usage that both counts make. */
export function networkUsageOf(passed: PerDirection<KernelCount>, counts: MeteredCounts): NetworkUsage {
  return perDirection((direction) => ({
    passed_bytes: passed[direction].bytes,
    passed_packets: passed[direction].packets,
    ...counts[direction],
  }));
}

function perDirection<Value>(of: (direction: (typeof DIRECTIONS)[number]) => Value): PerDirection<Value> {
  return Object.fromEntries(DIRECTIONS.map((direction) => [direction, of(direction)])) as PerDirection<Value>;
}
