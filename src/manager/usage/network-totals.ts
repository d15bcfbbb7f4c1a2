import type { Metric } from '../../base/metrics.ts';
import type { DirectionUsage, NetworkUsage } from '../../contract/sandboxes.ts';

const DIRECTIONS = ['egress', 'ingress'] as const;
const NOTHING: DirectionUsage = {
  passed_bytes: 0,
  passed_packets: 0,
  dropped_bytes: 0,
  dropped_packets: 0,
  waited_ms: 0,
};
const FIELDS = Object.keys(NOTHING) as (keyof DirectionUsage)[];

/** The usage of a sandbox whose network has passed nothing. */
export const NO_TRAFFIC: NetworkUsage = { egress: NOTHING, ingress: NOTHING };

/** The later of two readings of counters that never decrease. */
export function latestOf(a: NetworkUsage, b: NetworkUsage): NetworkUsage {
  const of = (one: DirectionUsage, other: DirectionUsage) =>
    combined(one, other, (value, others) => Math.max(value, others));
  return { egress: of(a.egress, b.egress), ingress: of(a.ingress, b.ingress) };
}

/** The traffic of all sandboxes that this manager has counted since its start; it never decreases. */
export class NetworkTotals {
  #sums = NO_TRAFFIC;
  /** What is in the sums already, also if the transaction that was to store it has failed. */
  readonly #added = new Map<string, NetworkUsage>();

  /** Adds what has passed between two readings of a sandbox. */
  add(sandbox_id: string, before: NetworkUsage, now: NetworkUsage): void {
    const known = latestOf(this.#added.get(sandbox_id) ?? NO_TRAFFIC, before);
    const latest = latestOf(known, now);
    for (const direction of DIRECTIONS) {
      const growth = combined(latest[direction], known[direction], (value, old) => value - old);
      const sum = combined(this.#sums[direction], growth, (value, more) => value + more);
      this.#sums = { ...this.#sums, [direction]: sum };
    }
    this.#added.set(sandbox_id, latest);
  }

  /** Forgets sandboxes whose last reading is stored. */
  keepOnly(sandbox_ids: Set<string>): void {
    for (const id of this.#added.keys()) if (!sandbox_ids.has(id)) this.#added.delete(id);
  }

  /** The sums by direction, for the registry. Source: contract section 7, "Network". */
  metrics(): Metric[] {
    const sum = (name: string, help: string, field: keyof DirectionUsage, unit = 1): Metric => ({
      name: `network_${name}_total`,
      type: 'counter',
      help,
      samples: () =>
        DIRECTIONS.map((direction) => ({
          labels: { direction },
          value: this.#sums[direction][field] / unit,
        })),
    });
    return [
      sum('passed_bytes', 'Bytes that passed the networks of sandboxes.', 'passed_bytes'),
      sum('passed_packets', 'Packets that passed the networks of sandboxes.', 'passed_packets'),
      sum('dropped_bytes', 'Bytes of datagrams that were dropped for want of tokens.', 'dropped_bytes'),
      sum('dropped_packets', 'Datagrams that were dropped for want of tokens.', 'dropped_packets'),
      sum('wait_seconds', 'Time for which packets waited for tokens.', 'waited_ms', 1_000),
    ];
  }
}

function combined(
  a: DirectionUsage,
  b: DirectionUsage,
  of: (a: number, b: number) => number,
): DirectionUsage {
  return Object.fromEntries(
    FIELDS.map((field) => [field, of(a[field], b[field])]),
  ) as unknown as DirectionUsage;
}
