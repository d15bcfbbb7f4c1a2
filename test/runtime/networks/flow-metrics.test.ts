import { expect, it } from 'vitest';
import { flowMetrics } from '../../../src/runtime/networks/flow-metrics.ts';

const REFUSED = { sandbox_held: 5, sandbox_rate: 4, team_held: 3, team_rate: 2, node_rate: 1 };

it("metrics of the node's connections say how full its table is, and which bounds refused", async () => {
  const table = { size: 70, size_max: 100, refused: REFUSED };
  const metrics = flowMetrics(async () => table);
  const samples = await Promise.all(metrics.map(async ({ name, samples }) => [name, await samples()]));
  expect(Object.fromEntries(samples)).toEqual({
    network_flows: [{ value: 70 }],
    network_flows_max: [{ value: 100 }],
    network_flows_refused_total: Object.entries(REFUSED).map(([bound, value]) => ({
      labels: { bound },
      value,
    })),
  });
});

it('metrics of connections are zero where the network is not metered', async () => {
  const samples = await Promise.all(flowMetrics().map(({ samples }) => samples()));
  const all = samples.flat();
  expect(all).toHaveLength(7);
  for (const { value } of all) expect(value).toBe(0);
});
