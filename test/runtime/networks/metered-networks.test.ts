import { describe, expect, it } from 'vitest';
import { networkProblem } from '../../../src/network/problem.ts';
import { OUTSIDE } from '../../support/network/topology.ts';
import { MeteredNode } from '../../support/runtime/metered-node.ts';

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;
const DAEMON = 'curl -s -o /dev/null -w %{http_code} http://localhost:49983/healthz';

describe.skipIf(problem !== null)(`a sandbox with a metered network${why}`, () => {
  it('reaches the outside over both families, counted, and its daemon at localhost:49983', async () => {
    const node = await MeteredNode.open();
    const id = await node.create('sbx-1');
    expect(await node.connect(id, OUTSIDE.ipv4, 7_000)).toBe('connected');
    expect(await node.connect(id, OUTSIDE.ipv6, 7_000)).toBe('connected');
    const { egress, ingress } = (await node.networks.usage(id)) ?? {};
    expect(egress?.passed_packets).toBeGreaterThan(5);
    expect(ingress?.passed_bytes).toBeGreaterThan(200);
    expect(await node.shell(id, 'echo $SANDBOXD_URL')).toBe('http://127.0.0.1:49983');
    expect(await node.shell(id, DAEMON)).toBe('200');
  });

  it('has with block-all its loopback alone, where its daemon is', async () => {
    const node = await MeteredNode.open();
    const id = await node.create('sbx-1', { network_mode: 'block-all' });
    expect(await node.shell(id, 'ls /proc/sys/net/ipv4/conf')).toBe('all\ndefault\nlo');
    expect(await node.connect(id, OUTSIDE.ipv4, 7_000)).toContain('Network is unreachable');
    expect(await node.shell(id, DAEMON)).toBe('200');
    expect((await node.networks.usage(id))?.egress.passed_bytes).toBe(0);
  });
});
