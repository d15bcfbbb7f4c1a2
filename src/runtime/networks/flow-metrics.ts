import type { Metric } from '../../base/metrics.ts';
import type { FlowTable } from '../../network/network-runtime.ts';

/** Where nothing is bounded. */
const NONE: FlowTable = {
  size: 0,
  size_max: 0,
  refused: { sandbox_held: 0, sandbox_rate: 0, team_held: 0, team_rate: 0, node_rate: 0 },
};

/** The metrics of the node's tracked connections; all zero where the network is not metered. Source: contract section 8. */
export function flowMetrics(read: () => Promise<FlowTable | null> = async () => null): Metric[] {
  const of = async <Value>(pick: (table: FlowTable) => Value[]) => pick((await read()) ?? NONE);
  return [
    {
      name: 'network_flows',
      type: 'gauge',
      help: "Connections that the node's kernel tracks, of sandboxes and all else.",
      samples: () => of(({ size }) => [{ value: size }]),
    },
    {
      name: 'network_flows_max',
      type: 'gauge',
      help: "Connections that the node's kernel has room for.",
      samples: () => of(({ size_max }) => [{ value: size_max }]),
    },
    {
      name: 'network_flows_refused_total',
      type: 'counter',
      help: 'Packets of sandboxes that were refused to begin a connection, by the bound.',
      samples: () =>
        of(({ refused }) => Object.entries(refused).map(([bound, value]) => ({ labels: { bound }, value }))),
    },
  ];
}
