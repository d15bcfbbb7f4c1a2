import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { whyNoCluster } from '../../support/kubernetes/cluster.ts';
import { ManagerProgram } from '../../support/manager-program.ts';
import type { Bench, Benchmark } from '../support/bench.ts';
import { DIST } from '../support/daemon.ts';
import { median, nowMs, percentile, sleepMs } from '../support/numbers.ts';
import { memoryBytes } from '../support/process-figures.ts';
import { IS_SHORT } from '../support/size.ts';
import { figure, type Row, skipped } from '../support/table.ts';
import { ManagedCluster, POOLED } from './managed-cluster.ts';

/** In two batches, each of which is deleted at once: a Pod that ends would slow the next one's start. */
const BATCHES = 2;
const BATCH = 10;
const DELETES = 5;
/** A kubelet looks once in this time at what runs, and says so. */
const KUBELET_LOOKS_MS = 1_000;
const POOL_CLAIMS = 10;
const CHANGES = 20;
const RESIZES = 5;
const FORKS = 5;
const AT_ONCE = 10;
const REQUESTS = 200;
const STARTS = 5;
const RESTED_MS = 2_000;
/** Is in the code of the runtime `kubernetes`, and nowhere else. */
const MARK = 'selfsubjectaccessreviews';

/** Sandboxes in a cluster of one node on this machine: each verb of a manager, beside what the cluster takes by itself. */
export const kubernetes: Benchmark = {
  name: 'kubernetes',
  async run(bench) {
    const why_not = IS_SHORT ? 'a cluster takes longer than a short run' : whyNoCluster();
    if (why_not !== null) return bench.report(skipped('sandboxes in a cluster', why_not));
    const cluster = await ManagedCluster.start(bench);
    await starts(bench, cluster);
    const manager = await cluster.manager();
    const ends = { with: manager };
    bench.onEnd(() => ends.with.end('SIGTERM'));
    await cluster.use(manager);
    await claims(bench, cluster);
    await verbs(bench, cluster);
    await atOnce(bench, cluster);
    await manager.end('SIGTERM');
    ends.with = await cluster.manager(1);
    await cluster.use(ends.with);
    await fromPool(bench, cluster);
  },
};

/**
 * In turn, so that whatever else the machine does slows both. Each begins at any moment between two looks of the kubelet:
 * just after the look that ended the last one, it would always wait for nearly all of the time until the next.
 */
async function claims(bench: Bench, cluster: ManagedCluster): Promise<void> {
  const [bare, ours]: [number[], number[]] = [[], []];
  for (let batch = 0; batch < BATCHES; batch++) {
    const undo: (() => Promise<void>)[] = [];
    for (let i = 0; i < BATCH; i++) {
      await sleepMs(Math.random() * KUBELET_LOOKS_MS);
      const [bare_ms, remove] = await timed(() => cluster.barePod());
      await sleepMs(Math.random() * KUBELET_LOOKS_MS);
      const [our_ms, { sandbox_id }] = await timed(() => cluster.claim());
      undo.push(remove, () => cluster.delete(sandbox_id));
      bare.push(bare_ms);
      ours.push(our_ms);
    }
    await Promise.all(undo.map((remove) => remove()));
  }
  const name = 'claim, image present; bare: a Pod of it until it runs';
  bench.report(times(`${name}, p50`, ours, { bare, wanted_ms: 1_500 }));
  bench.report(times(`${name}, p95`, ours, { bare, wanted_ms: 3_000, share: 0.95 }));
  const deleted = await repeatedAfter(
    DELETES,
    () => cluster.claim(),
    ({ sandbox_id }) => cluster.delete(sandbox_id),
  );
  bench.report(times('delete, until nothing is left in the cluster, p50', deleted));
}

async function verbs(bench: Bench, cluster: ManagedCluster): Promise<void> {
  const { sandbox_id } = await cluster.claim();
  const path = `/${sandbox_id}`;
  const [paused, resumed]: [number[], number[]] = [[], []];
  for (let i = 0; i < CHANGES; i++) {
    paused.push((await timed(() => cluster.call('POST', `${path}/pause`)))[0]);
    resumed.push((await timed(() => cluster.call('POST', `${path}/resume`)))[0]);
  }
  bench.report(times('pause, p50', paused, { wanted_ms: 150 }));
  bench.report(times('resume, p50', resumed, { wanted_ms: 150 }));
  const change = (config: (i: number) => object, count: number) =>
    repeated(count, async (i) => void (await cluster.call('PUT', path, { config: config(i) })));
  const env = await change((i) => ({ env_vars: { STEP: String(i) } }), CHANGES);
  bench.report(times('a change of the environment, p50', env));
  const memory = await change((i) => ({ resources: { memory: i % 2 ? '256Mi' : '320Mi' } }), RESIZES);
  bench.report(times('a change of memory, given by the node, p50', memory));

  const turns = await repeated(REQUESTS, async () => void (await cluster.call('GET', `${path}/processes`)));
  const bare = await repeated(REQUESTS, async () => void (await cluster.call('GET', path)));
  bench.report(times('a request through the keeper, p50; bare: the manager alone', turns, { bare }));

  const forked: number[] = [];
  for (let i = 0; i < FORKS; i++) {
    const [took_ms, { data }] = await timed(() => cluster.call('POST', `${path}/fork`));
    forked.push(took_ms);
    await cluster.delete(data.sandbox.id);
  }
  bench.report(times('fork of a small sandbox, p50', forked));
  await cluster.delete(sandbox_id);
}

/** All of them are there, and afterwards nothing is. */
async function atOnce(bench: Bench, cluster: ManagedCluster): Promise<void> {
  const [took_ms, made] = await timed(() =>
    Promise.all(Array.from({ length: AT_ONCE }, () => cluster.claim())),
  );
  bench.report(times(`${AT_ONCE} claims at once, the last`, [took_ms], { wanted_ms: 12_000 }));
  await Promise.all(made.map(({ sandbox_id }) => cluster.delete(sandbox_id)));
  const left = cluster.objects();
  const verdict = left.length === 0 ? 'ok' : 'broken';
  const name = 'objects left of all these in the cluster';
  bench.report({ name, bare: '', ours: String(left.length), ratio: '', wanted: '0', verdict });
}

async function fromPool(bench: Bench, cluster: ManagedCluster): Promise<void> {
  const taken: number[] = [];
  for (let i = 0; i < POOL_CLAIMS; i++) {
    await cluster.poolOf(1);
    const [took_ms, { sandbox_id, pod_name }] = await timed(() => cluster.claim(POOLED));
    if (!pod_name.startsWith('pool-')) throw new Error('the claim was not served by the pool');
    taken.push(took_ms);
    await cluster.delete(sandbox_id);
  }
  bench.report(times('claim from a pool, p50', taken, { wanted_ms: 250 }));
}

/** The manager's start and memory with this runtime and without any; and what of the package only this one loads. */
async function starts(bench: Bench, cluster: ManagedCluster): Promise<void> {
  const begun: Record<'bare' | 'ours', { took: number[]; bytes: number[] }> = {
    bare: { took: [], bytes: [] },
    ours: { took: [], bytes: [] },
  };
  const bare = () => {
    const folder = bench.folder();
    const files = ['--database', `sqlite:${join(folder, 'm.db')}`, '--secret-key-file', join(folder, 'key')];
    return ManagerProgram.start(['--runtime', 'none', '--listen', '127.0.0.1:0', ...files]);
  };
  for (let i = 0; i < STARTS; i++) {
    for (const [side, start] of [
      ['bare', bare],
      ['ours', () => cluster.manager()],
    ] as const) {
      const [took_ms, manager] = await timed(start);
      await sleepMs(RESTED_MS);
      begun[side].took.push(took_ms);
      begun[side].bytes.push(memoryBytes(manager.child.pid as number));
      await manager.end('SIGTERM');
    }
  }
  const name = "the manager's start until ready, p50; bare: --runtime none";
  bench.report(times(name, begun.ours.took, { bare: begun.bare.took }));
  const [our_mb, bare_mb] = [median(begun.ours.bytes) / 1e6, median(begun.bare.bytes) / 1e6];
  const sizes = readdirSync(DIST)
    .filter((file) => file.endsWith('.cjs') && readFileSync(join(DIST, file), 'utf8').includes(MARK))
    .map((file) => statSync(join(DIST, file)).size / 1e3);
  const told = { wanted: 'told', verdict: 'ok' } as const;
  bench.report({
    name: "the manager's resident memory; bare: --runtime none",
    ...{
      bare: `${figure(bare_mb)} MB`,
      ours: `${figure(our_mb)} MB`,
      ratio: `${figure(our_mb / bare_mb)} ×`,
    },
    ...told,
  });
  bench.report({
    name: 'code of this runtime, which no other loads',
    ...{ bare: '', ours: `${sizes.map(figure).join(', ')} kB in ${sizes.length} file`, ratio: '', ...told },
  });
}

async function timed<Result>(work: () => Promise<Result>): Promise<[took_ms: number, Result]> {
  const began_ms = nowMs();
  const result = await work();
  return [nowMs() - began_ms, result];
}

/** How long each of so many took. */
async function repeated(count: number, work: (i: number) => Promise<void>): Promise<number[]> {
  const took: number[] = [];
  for (let i = 0; i < count; i++) took.push((await timed(() => work(i)))[0]);
  return took;
}

/** How long each of so many took, after something that is not counted. */
async function repeatedAfter<Made>(
  count: number,
  before: () => Promise<Made>,
  work: (made: Made) => Promise<void>,
): Promise<number[]> {
  const took: number[] = [];
  for (let i = 0; i < count; i++) {
    const made = await before();
    took.push((await timed(() => work(made)))[0]);
  }
  return took;
}

/** A row of times in ms: the median, or another share, beside the same of the bare operation. */
function times(
  name: string,
  values: number[],
  { bare, wanted_ms, share = 0.5 }: { bare?: number[]; wanted_ms?: number; share?: number } = {},
): Row {
  const ours = percentile(values, share);
  const own = bare === undefined ? null : percentile(bare, share);
  return {
    name,
    bare: own === null ? '' : `${figure(own)} ms`,
    ours: `${figure(ours)} ms`,
    ratio: own === null ? '' : `${figure(ours / own)} ×`,
    wanted: wanted_ms === undefined ? 'told' : `≤ ${wanted_ms} ms`,
    verdict: wanted_ms === undefined || ours <= wanted_ms ? 'ok' : 'missed',
    ...(own === null ? {} : { measured: { ours, ratio: ours / own } }),
  };
}
