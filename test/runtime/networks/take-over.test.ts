import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { networkProblem } from '../../../src/network/problem.ts';
import { until } from '../../faults/support/until.ts';
import { bandwidth, teamLimits } from '../../support/network/test-node.ts';
import { OUTSIDE } from '../../support/network/topology.ts';
import { runSync } from '../../support/run-sync.ts';
import { MeteredNode } from '../../support/runtime/metered-node.ts';
import { spec } from '../../support/runtime/sandboxes.ts';

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;
const MB = 1_000_000;
const RATE = MB;
const BURST = 65_536;

/** Sends so many bytes to the outside and writes what arrived there. */
const PUT = (bytes: number) => `perl -MSocket -e '
  socket(my $s, AF_INET, SOCK_STREAM, 0); connect($s, sockaddr_in(7000, inet_aton("${OUTSIDE.ipv4}"))) or die "$!\\n";
  select($s); $| = 1; print "{\\"job\\":\\"take\\"}\\n";
  for (my $left = ${bytes}; $left > 0;) { $left -= syswrite($s, "x" x ($left < 65536 ? $left : 65536)) // die "$!\\n" }
  shutdown($s, 1); select(STDOUT); print <$s>'`;

describe.skipIf(problem !== null)(`the networks of several managers${why}`, () => {
  it('are taken over from a killed one with their connections, limits and counts, and nothing of them is left', async () => {
    const node = await MeteredNode.open();
    const program = await node.startProgram();
    const given = spec('sbx-1', { bandwidth: bandwidth(RATE, BURST) });
    expect(await program.order({ verb: 'create', spec: given })).toEqual({
      pod_name: 'local-sbx-1',
      persistence: 'root',
    });
    const put = node.shell('sbx-1', PUT(4 * MB));
    const passed = async () => (await node.networks.usage('sbx-1'))?.egress.passed_bytes ?? 0;
    await until('some of it has passed', async () => (await passed()) > MB);
    await node.networks.refresh();
    // It is the other's as long as that lives.
    expect((await program.order({ verb: 'usage', sandbox_id: 'sbx-1' })).egress.waited_ms).toBeGreaterThan(0);
    await program.stop();
    const began = performance.now();
    const at_death = await passed();
    await node.networks.refresh();
    expect(JSON.parse(await put)).toMatchObject({ bytes: 4 * MB });
    const seconds = (performance.now() - began) / 1_000;
    expect((await passed()) - at_death).toBeLessThanOrEqual(BURST + RATE * seconds);
    const final = await node.networks.cut('sbx-1');
    expect(await node.networks.cut('sbx-1')).toEqual(final);
    await node.sandboxes.runtime.end('sbx-1');
    await node.sandboxes.runtime.remove('sbx-1');
    await node.networks.close();
    expect(node.remains()).toEqual([]);
  });

  it('are let go where another has removed them, and removed where their sandbox is gone', async () => {
    const node = await MeteredNode.open();
    const program = await node.startProgram();
    for (const sandbox_id of ['sbx-1', 'sbx-2'])
      await program.order({ verb: 'create', spec: spec(sandbox_id, { bandwidth: bandwidth(RATE) }) });
    await node.sandboxes.runtime.end('sbx-1');
    await node.sandboxes.runtime.remove('sbx-1');
    await program.order({ verb: 'refresh' });
    expect(await program.order({ verb: 'usage', sandbox_id: 'sbx-1' })).toBeNull();
    expect((await program.order({ verb: 'usage', sandbox_id: 'sbx-2' })).egress).toBeDefined();
    // One that ends gives its sandboxes away.
    await program.order({ verb: 'close' });
    await node.networks.refresh();
    expect(await node.connect('sbx-2', OUTSIDE.ipv4, 7_000)).toBe('connected');
    await node.sandboxes.runtime.end('sbx-2');
    rmSync(join(node.sandboxes.data_dir, 'sbx-2', 'network.json'));
    await node.networks.refresh();
    expect(node.remains().filter((line) => !line.includes('/disk'))).toEqual([
      expect.stringContaining('table'),
    ]);
  });

  it('are found again where the mount namespace that names them ended with its manager', async () => {
    const node = await MeteredNode.open();
    const program = await node.startProgram({ has_own_mounts: true });
    await program.order({ verb: 'create', spec: spec('sbx-1', { bandwidth: bandwidth(RATE) }) });
    expect(await node.networks.usage('sbx-1')).toBeNull();
    await program.stop();
    // Disks are mounted again at the start of a manager.
    await node.sandboxes.runtime.start();
    await node.sandboxes.runtime.takeOver();
    await node.networks.refresh();
    expect(await node.connect('sbx-1', OUTSIDE.ipv4, 7_000)).toBe('connected');
    expect((await node.networks.usage('sbx-1'))?.egress.passed_packets).toBeGreaterThan(2);
  });

  it('are complete or gone after a kill in the middle of creations', async () => {
    const node = await MeteredNode.open();
    const within = (name: string) => existsSync(join(node.sandboxes.data_dir, 'sbx-1', name));
    const stages: [stage: string, isReached: () => boolean][] = [
      ['its network is noted', () => within('network.json')],
      ['it has a namespace', () => node.remains().some((line) => line.includes('sbx-1'))],
      ['its daemon is started', () => within('daemon.log')],
      ['its daemon listens', () => within('control.sock') || within('disk/control.sock')],
    ];
    for (const [stage, isReached] of stages) {
      const program = await node.startProgram();
      for (const sandbox_id of ['sbx-1', 'sbx-2']) program.tell({ verb: 'create', spec: spec(sandbox_id) });
      await until(stage, isReached);
      await program.stop();
      await node.networks.refresh();
      for (const sandbox_id of await node.sandboxes.runtime.list()) {
        await node.sandboxes.runtime.end(sandbox_id);
        await node.sandboxes.runtime.remove(sandbox_id);
      }
      await node.networks.refresh();
    }
    await node.networks.close();
    expect(node.remains()).toEqual([]);
  });

  it("hold a team's changed limits on open connections, and count as the kernel counts on the way", async () => {
    const node = await MeteredNode.open();
    node.limits = teamLimits(2 * MB, BURST);
    const id = await node.create('sbx-1');
    const { interface: link } = await node.linkOf(id);
    const nft = (...args: string[]) => runSync('ip', 'netns', 'exec', node.topology.node, 'nft', ...args);
    nft(
      `table inet witness { chain in { type filter hook prerouting priority -400; iifname "${link}" counter; }; }`,
    );
    const passed = async () => (await node.networks.usage(id))?.egress.passed_bytes ?? 0;
    const before = await passed();
    const put = node.shell(id, PUT(3 * MB));
    await until('some of it has passed', async () => (await passed()) > MB);
    node.limits = teamLimits(0);
    await node.networks.refresh();
    const at_stop = await passed();
    await node.networks.refresh();
    expect(await passed()).toBe(at_stop);
    node.limits = teamLimits(50 * MB);
    await node.networks.refresh();
    expect(JSON.parse(await put)).toMatchObject({ bytes: 3 * MB });
    const { egress } = (await node.networks.cut(id)) ?? {};
    const witnessed = Number(/bytes (\d+)/.exec(nft('list', 'table', 'inet', 'witness'))?.[1]);
    expect((egress?.passed_bytes ?? 0) - before).toBe(witnessed);
  });

  it('survive pause and resume, and a fork gets one of its own', async () => {
    const node = await MeteredNode.open();
    const id = await node.create('sbx-1');
    const { runtime } = node.sandboxes;
    await runtime.pause(id, null);
    await runtime.fork(id, spec('sbx-2'));
    await runtime.resume(id, null);
    await runtime.resume('sbx-2', null);
    for (const sandbox_id of [id, 'sbx-2']) {
      expect(await node.connect(sandbox_id, OUTSIDE.ipv4, 7_000)).toBe('connected');
    }
    expect((await node.linkOf(id)).index).not.toBe((await node.linkOf('sbx-2')).index);
  });
});
