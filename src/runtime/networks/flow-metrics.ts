import type { Metric } from '../../base/metrics.ts';
import type { FlowTable } from '../../network/network-runtime.ts';

/** The metrics of the node's tracked connections; without samples where the network is not metered. Source: contract section 8. */
export function flowMetrics(read: () => Promise<FlowTable | null>): Metric[] {
  const of = async <Value>(pick: (table: FlowTable) => Value[]) => {
    const table = await read();
    return table === null ? [] : pick(table);
  };
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
