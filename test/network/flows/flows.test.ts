import { describe, expect, it, onTestFinished } from 'vitest';
import { networkProblem } from '../../../src/network/problem.ts';
import { bandwidth, TestNode, UNLIMITED } from '../../support/network/test-node.ts';
import { NODE, OUTSIDE } from '../../support/network/topology.ts';
import { runSync } from '../../support/run-sync.ts';

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;

const AMPLE = { per_second: 1_000_000, burst: 1_000_000 };
/** No rate, so that only what is held counts. */
const NO_RATES = { sandbox_rate: AMPLE, team_rate: AMPLE, team_calm: AMPLE, node_rate: AMPLE };

const other = (node: TestNode) => node.sandbox(bandwidth(0), UNLIMITED, 'other');

/** What the node's own connections come to: outwards, and on its loopback. */
async function nodeConnects(node: TestNode): Promise<unknown[]> {
  const { topology } = node;
  const probes = [OUTSIDE.ipv4, '127.0.0.1'].map((host) =>
    topology.traffic(topology.node, 'probe', host, 7_000),
  );
  return await Promise.all(probes.map(async (probe) => (await probe.next<{ outcome: string }>()).outcome));
}

describe.skipIf(problem !== null)(`the flows that a node tracks${why}`, () => {
  it('are bounded for each sandbox, whatever it sends, and refused before they take a place', async () => {
    const node = await TestNode.start(onTestFinished);
    await node.bound({ ...NO_RATES, sandbox_held: 40 });
    await node.topology.serve(node.topology.node);
    const flooder = await node.sandbox();
    for (const host of [OUTSIDE.ipv4, OUTSIDE.ipv6]) await flooder.traffic('flows', host, 100).next();
    const { size, refused } = await node.network.flowTable();
    expect(size).toBe(40);
    expect(refused.sandbox_held).toBeGreaterThanOrEqual(160);
    expect(await flooder.probe(OUTSIDE.ipv4, 7_000)).toMatch(/^E(HOSTUNREACH|ACCES)$/);
    expect(await (await node.sandbox()).probe(OUTSIDE.ipv6, 7_000)).toBe('connected');
    expect(await nodeConnects(node)).toEqual(['connected', 'connected']);
  });

  it('are bounded in number over time, for a sandbox and for its team', async () => {
    const node = await TestNode.start(onTestFinished);
    const slow = (burst: number) => ({ per_second: 1, burst });
    await node.bound({ ...NO_RATES, sandbox_rate: slow(30), team_rate: slow(50) });
    const [one, two] = [await node.sandbox(), await node.sandbox()];
    for (const sandbox of [one, two]) await sandbox.traffic('flows', OUTSIDE.ipv4, 100).next();
    const { size, refused } = await node.network.flowTable();
    expect(refused.sandbox_rate).toBeGreaterThan(100);
    expect(refused.team_rate).toBeGreaterThan(0);
    expect(size).toBeGreaterThanOrEqual(50);
    expect(size).toBeLessThan(150);
    expect(await (await other(node)).probe(OUTSIDE.ipv4, 7_000)).toBe('connected');
  });

  it('of a team are served at a calm rate although all others together are at their bound', async () => {
    const node = await TestNode.start(onTestFinished);
    const none = { per_second: 1, burst: 1 };
    await node.bound({ ...NO_RATES, team_calm: { per_second: 1, burst: 20 }, node_rate: none });
    await (await node.sandbox()).traffic('flows', OUTSIDE.ipv4, 100).next();
    const { size, refused } = await node.network.flowTable();
    expect(refused.node_rate).toBeGreaterThan(50);
    expect(size).toBeGreaterThanOrEqual(20);
    expect(await (await other(node)).probe(OUTSIDE.ipv4, 7_000)).toBe('connected');
  });

  it('count once, however many packets nobody answers', async () => {
    const node = await TestNode.start(onTestFinished);
    await node.bound({ sandbox_rate: { per_second: 1, burst: 5 } });
    const sandbox = await node.sandbox();
    await sandbox.traffic('datagrams', OUTSIDE.ipv4, 500, 100, 100).next();
    expect((await sandbox.usage()).egress.passed_packets).toBeGreaterThanOrEqual(500);
    expect((await node.network.flowTable()).refused.sandbox_rate).toBe(0);
  });

  it('of a team that holds more than its part are not increased, and one that comes later is served', async () => {
    const node = await TestNode.start(onTestFinished);
    await node.bound({ ...NO_RATES, sandboxes_held: 100 });
    await node.topology.serve(node.topology.node);
    const [one, two] = [await node.sandbox(), await node.sandbox()];
    for (const sandbox of [one, two]) await sandbox.traffic('flows', OUTSIDE.ipv4, 40).next();
    await node.network.lookAtFlows();
    for (const sandbox of [one, two]) await sandbox.traffic('flows', OUTSIDE.ipv6, 40).next();
    const { size, refused } = await node.network.flowTable();
    expect([size, refused.team_held]).toEqual([80, 80]);
    const late = await other(node);
    await node.network.lookAtFlows();
    expect(await late.probe(OUTSIDE.ipv4, 7_000)).toBe('connected');
    expect(await nodeConnects(node)).toEqual(['connected', 'connected']);
    // What it holds no longer lets it begin anew.
    await node.network.detach(one.id);
    await node.network.lookAtFlows();
    expect(await two.probe(OUTSIDE.ipv4, 7_000)).toBe('connected');
  });

  it('end with their sandbox, and no others do', async () => {
    const node = await TestNode.start(onTestFinished);
    const [one, two] = [await node.sandbox(), await node.sandbox()];
    const held = [one.traffic('hold', OUTSIDE.ipv4, 10), two.traffic('hold', OUTSIDE.ipv6, 10)];
    for (const each of held) expect(await each.next()).toMatchObject({ held: 10 });
    const { topology } = node;
    const listed = runSync(
      'ip',
      'netns',
      'exec',
      topology.node,
      'sh',
      '-c',
      'cat /proc/net/nf_conntrack || :',
    );
    for (const [, seconds] of listed.matchAll(/ tcp +6 (\d+) ESTABLISHED .*mark=2/g))
      expect(Number(seconds)).toBeLessThanOrEqual(7_500);
    const before = (await node.network.flowTable()).size;
    await node.network.detach(one.id);
    expect((await node.network.flowTable()).size).toBe(before - 10);
  });

  it('of published ports are bounded as those that the sandbox begins', async () => {
    const node = await TestNode.start(onTestFinished);
    await node.bound({ ...NO_RATES, sandbox_held: 20 });
    const sandbox = await node.sandbox();
    await node.topology.serve(sandbox.namespace);
    const to = (await node.network.linkOf(sandbox.id))?.sandbox.ipv4;
    const publish = `add table ip published; add chain ip published in { type nat hook prerouting priority -100; }; add rule ip published in iifname "out" tcp dport 7000 dnat to ${to}`;
    runSync('ip', 'netns', 'exec', node.topology.node, 'nft', publish);
    const held = node.topology.traffic(node.topology.outside, 'hold', NODE.ipv4, 23);
    expect(await held.next()).toEqual({ held: 20, refused: 3 });
    await node.network.detach(sandbox.id);
    expect((await node.network.flowTable()).size).toBeLessThan(20);
  });
});
