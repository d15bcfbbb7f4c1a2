import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { networkProblem } from '../../src/network/problem.ts';
import { openConsumer } from '../support/consumer.ts';
import type { Client } from '../support/manager/manager-client.ts';
import { dealt } from '../support/neighbours/behaviours.ts';
import type { HostileCallVerbs } from '../support/neighbours/calls.ts';
import { NeighbourNode } from '../support/neighbours/node.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { DIST } from './support/daemon.ts';
import { median, nowMs, percentile, sleepMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { figure, skipped } from './support/table.ts';

const SANDBOXES = sized(16, 2);
const HOSTILE = { resources: { memory: '128Mi', cpu: 0.05, disk: '128Mi' } };
/** A whole core: it has no more while nobody else wants any, so that both sides are held to what it has leased. */
const HONEST = { resources: { memory: '256Mi', cpu: 1, disk: '256Mi' } };
/** In which the hostile sandboxes take what they may. */
const TAKING_MS = sized(20_000, 1_000);
const CLAIMS = sized(8, 1);
const STARTS = sized(40, 2);
const DOWNLOADS = sized(20, 2);
const DOWNLOAD_BYTES = sized(8 * 2 ** 20, 2 ** 16);
const CALLS = sized(300, 5);
const PUBLISHES = sized(60, 2);
const RATIO_MAX = 3;
const JSON_TYPE = 'application/json';

/** Publishes one after the other in the sandbox, and says how long each took, in ms. */
const PUBLISHER = `
import json, os, time, urllib.request
took = []
for _ in range(${PUBLISHES}):
    body = json.dumps({"payload": {"text": "x" * 1000}}).encode()
    request = urllib.request.Request(os.environ["SANDBOXD_URL"] + "/api/v1/webhook/publish", body, {"content-type": "${JSON_TYPE}"})
    began = time.monotonic()
    urllib.request.urlopen(request, timeout=60).read()
    took.append((time.monotonic() - began) * 1000)
print(json.dumps(took))`;

/** What is timed, in ms. */
interface Times {
  claim: number[];
  start: number[];
  download: number[];
  publish: number[];
  call: number[];
}

const FIGURES: [name: string, of: (times: Times) => number][] = [
  ['claim p50', ({ claim }) => median(claim)],
  ['process start p50', ({ start }) => median(start)],
  ['download of 8 MiB p50', ({ download }) => median(download)],
  ['publish p50', ({ publish }) => median(publish)],
  ['API p99', ({ call }) => percentile(call, 0.99)],
];

/** Another team beside hostile sandboxes that each do all they may, against the same team on the quiet node. */
export const neighbours: Benchmark = {
  name: 'neighbours',
  async run(bench) {
    const problem = await networkProblem();
    if (problem !== null) return bench.report(skipped('neighbours', problem));
    const seed = Number(process.env.HOSTILE_SEED ?? randomInt(2 ** 31));
    console.log(`  HOSTILE_SEED=${seed}`);
    const onEnd = (undo: () => void | Promise<void>) => bench.onEnd(undo);
    const node = await NeighbourNode.start(bench.folder(), onEnd, join(DIST, 'sandbox-manager.cjs'));
    const { consumer, close } = await openConsumer(node.here);
    bench.onEnd(close);
    const honest = await node.client('team_honest', onEnd);
    const webhook = { url: consumer.url, secret: 'made for this run' };
    const config = { ...HONEST, webhook };
    const sandbox_id = await honest.claim(config);
    await prepare(honest, sandbox_id);
    const quiet = await timed(honest, sandbox_id, config);
    await beginAttack(bench, node, await node.client('team_hostile', onEnd), webhook, seed);
    await sleepMs(TAKING_MS);
    const beside = await timed(honest, sandbox_id, config);
    for (const [name, of] of FIGURES) {
      const [bare, ours] = [of(quiet), of(beside)];
      bench.report({
        ...{ name: `beside ${SANDBOXES} hostile sandboxes: ${name}`, wanted: `≤ ${RATIO_MAX} ×` },
        ...{ bare: `${figure(bare)} ms`, ours: `${figure(ours)} ms`, ratio: `${figure(ours / bare)} ×` },
        verdict: ours <= RATIO_MAX * bare ? 'ok' : 'missed',
        measured: { ours, ratio: ours / bare },
      });
    }
  },
};

async function beginAttack(
  bench: Bench,
  node: NeighbourNode,
  hostile: Client,
  webhook: object,
  seed: number,
): Promise<void> {
  const attacking = [];
  for (const behaviours of dealt(SANDBOXES, seed))
    attacking.push(await node.armed(hostile, { ...HOSTILE, webhook }, behaviours));
  for (const sandbox of attacking) await sandbox.begin();
  const sandbox_ids = attacking.map(({ id }) => id);
  const url = new URL('../support/neighbours/calls.ts', import.meta.url);
  const calls = await bench.program<HostileCallVerbs>(url);
  await calls.ask('begin', { url: hostile.url, token: hostile.token, sandbox_ids, seed });
}

async function prepare(client: Client, sandbox_id: string): Promise<void> {
  const path = `/api/v1/sandboxes/${sandbox_id}/files?path=/root/`;
  const bytes = { 'content-type': 'application/octet-stream' };
  for (const [name, content] of [
    ['publisher.py', PUBLISHER],
    ['big', 'x'.repeat(DOWNLOAD_BYTES)],
  ]) {
    const { status } = await client.call('PUT', `${path}${name}`, content, bytes);
    if (status >= 300) throw new Error(`the upload was answered ${status}`);
  }
}

async function timed(client: Client, sandbox_id: string, config: object): Promise<Times> {
  const path = `/api/v1/sandboxes/${sandbox_id}`;
  const took = async (times: number, act: () => Promise<unknown>) => {
    await act();
    const all: number[] = [];
    for (let i = 0; i < times; i++) {
      const began_ms = nowMs();
      await act();
      all.push(nowMs() - began_ms);
    }
    return all;
  };
  const claimed: string[] = [];
  const claim = await took(CLAIMS, async () => claimed.push(await client.claim(config)));
  for (const id of claimed) await served(client, 'DELETE', `/api/v1/sandboxes/${id}`);
  const start = await took(STARTS, () =>
    served(client, 'POST', `${path}/processes?wait_ms=60000`, { command: ['true'] }),
  );
  const download = await took(DOWNLOADS, async () => {
    const headers = { authorization: `Bearer ${client.token}` };
    const response = await fetch(`${client.url}${path}/files?path=/root/big`, { headers });
    const { byteLength } = await response.arrayBuffer();
    if (byteLength !== DOWNLOAD_BYTES) throw new Error(`a download was answered ${response.status}`);
  });
  const call = await took(CALLS, () => served(client, 'GET', path));
  const command = ['python3', '/root/publisher.py'];
  const { output } = await served(client, 'POST', `${path}/processes?wait_ms=120000`, { command });
  return { claim, start, download, call, publish: JSON.parse(output.stdout) };
}

// biome-ignore lint/suspicious/noExplicitAny: what the API answers.
async function served(client: Client, method: string, path: string, body?: object): Promise<any> {
  const { status, data, error } = await client.call(method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${error?.message}`);
  return data;
}
