import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import { networkProblem } from '../../src/network/problem.ts';
import { MeteredNetworks } from '../../src/runtime/networks/metered-networks.ts';
import { UnmeteredNetworks, unmetered } from '../../src/runtime/networks/unmetered-networks.ts';
import { remainsOf } from '../support/network/remains.ts';
import { bandwidth, teamLimits, UNLIMITED } from '../support/network/test-node.ts';
import { OUTSIDE, Topology } from '../support/network/topology.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { median, nowMs } from './support/numbers.ts';
import { SandboxNode } from './support/sandbox-node.ts';
import { sized } from './support/size.ts';
import { figure, type Row, skipped } from './support/table.ts';

const MB = 1_000_000;
const RATE = 12.5 * MB;
const BURST = 1.25 * MB;
const CLAIMS = sized(15, 1);
const CLAIM_MORE_MS = 60;
const LEFT_CLAIMS = sized(200, 4);
const LEFT_AT_ONCE = 4;
const DOWNLOAD_BYTES = sized(100 * MB, 2 * MB);
const PORT = 7_080;

/** Metered networks, on a node of the benchmark's own. */
function meteredOn(bench: Bench, topology: Topology): MeteredNetworks {
  const resolver_file = join(bench.folder(), 'resolv.conf');
  writeFileSync(resolver_file, '');
  return new MeteredNetworks({
    ...{ allowed_cidrs: [], is_fail_open: false, clock: systemClock, log: createLog('silent') },
    ...{ node_namespace: topology.node, resolver_files: [resolver_file] },
  });
}

/** A topology for the benchmark; reports that it is skipped, and returns null, where there can be none. */
async function topologyFor(bench: Bench, name: string): Promise<Topology | null> {
  const problem = await networkProblem();
  if (problem !== null) {
    bench.report(skipped(name, problem));
    return null;
  }
  const topology = new Topology();
  bench.onEnd(() => topology.remove());
  return topology;
}

function row(name: string, ours: string, wanted: string, is_ok: boolean, bare = '', ratio = ''): Row {
  return { name, bare, ours, ratio, wanted, verdict: is_ok ? 'ok' : 'missed' };
}

/** A sandbox with a network of its own, against one without, in turn. */
export const networkClaim: Benchmark = {
  name: 'network-claim',
  async run(bench) {
    const topology = await topologyFor(bench, 'sandbox with a metered network');
    if (!topology) return;
    const nodes = {
      bare: await SandboxNode.open(bench, new UnmeteredNetworks(unmetered(null))),
      ours: await SandboxNode.open(bench, meteredOn(bench, topology)),
    };
    const took: Record<keyof typeof nodes, number[]> = { bare: [], ours: [] };
    for (let i = 0; i < CLAIMS; i++) {
      for (const [side, node] of Object.entries(nodes) as [keyof typeof nodes, SandboxNode][]) {
        const began_ms = nowMs();
        const sandbox_id = await node.create(bandwidth(side === 'ours' ? RATE : 0));
        took[side].push(nowMs() - began_ms);
        await node.remove(sandbox_id);
      }
    }
    const [bare, ours] = [median(took.bare), median(took.ours)];
    const more = ours - bare;
    bench.report(
      row(
        'sandbox with a metered network, p50',
        `${figure(ours)} ms`,
        `≤ ${CLAIM_MORE_MS} ms more`,
        more <= CLAIM_MORE_MS,
        `${figure(bare)} ms`,
        `${figure(more)} ms more`,
      ),
    );
  },
};

/** What is left of sandboxes that were made and removed. */
export const networkLeft: Benchmark = {
  name: 'network-left',
  async run(bench) {
    const name = `left of ${LEFT_CLAIMS} sandboxes: namespaces, links, rules, mounts`;
    const topology = await topologyFor(bench, name);
    if (!topology) return;
    const networks = meteredOn(bench, topology);
    const node = await SandboxNode.open(bench, networks);
    const made = Array.from({ length: LEFT_AT_ONCE }, async () => {
      for (let i = 0; i < LEFT_CLAIMS / LEFT_AT_ONCE; i++)
        await node.remove(await node.create(bandwidth(RATE)));
    });
    await Promise.all(made);
    await networks.close();
    const left = remainsOf(topology, node.data_dir).length;
    const result = row(name, String(left), '0', left === 0);
    bench.report(left === 0 ? result : { ...result, verdict: 'broken' });
  },
};

/** A real client's download at a limit: of its sandbox, and of a team by two sandboxes together. */
export const networkDownload: Benchmark = {
  name: 'network-download',
  async run(bench) {
    const topology = await topologyFor(bench, 'curl at a limit');
    if (!topology) return;
    await topology.traffic(topology.outside, 'http', PORT, DOWNLOAD_BYTES).next();
    const curl = `curl -s -o /dev/null -w '%{time_total} %{size_download}' http://${OUTSIDE.ipv4}:${PORT}/`;
    const cases: [name: string, own: number, team: number, sandboxes: number][] = [
      ['curl, 100 MB at 12.5 MB/s', RATE, 0, 1],
      ["curl in two sandboxes, 200 MB at their team's 12.5 MB/s", 0, RATE, 2],
    ];
    for (const [name, own, team, count] of cases) {
      const limits = team === 0 ? UNLIMITED : teamLimits(team, BURST);
      const node = await SandboxNode.open(bench, meteredOn(bench, topology), limits);
      const made = Array.from({ length: count }, () => node.create(bandwidth(own, BURST)));
      const sandboxes = await Promise.all(made);
      const outputs = await Promise.all(sandboxes.map((sandbox_id) => node.output(sandbox_id, curl)));
      const took_s = Math.max(...outputs.map((output) => Number(output.split(' ')[0])));
      const passed = await Promise.all(
        sandboxes.map(
          async (sandbox_id) => (await node.networks.usage(sandbox_id))?.ingress.passed_bytes ?? 0,
        ),
      );
      const bytes = passed.reduce((sum, each) => sum + each, 0);
      const said_s = (bytes - BURST) / RATE;
      const is_ok = Math.abs(took_s / said_s - 1) <= 0.02;
      const wanted = `${figure(said_s)} s ± 2 %`;
      bench.report(row(name, `${took_s.toFixed(2)} s`, wanted, is_ok, '', (took_s / said_s).toFixed(4)));
    }
  },
};
