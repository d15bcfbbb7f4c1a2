import type { BareLoopVerbs } from './support/bare-loop.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import type { Received } from './support/consumer.ts';
import { type Daemon, SECRET } from './support/daemon.ts';
import { nowMs, sleepMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { comparison, figure } from './support/table.ts';

const OUTAGE_MS = sized(60_000, 2_000);
const QUEUED = sized(20_000, 200);
const CONCURRENCY = 16;
const LIVE_INTERVAL_MS = 20;
const LIVE = sized(150, 10);
/** What begins before the endpoint backs off: one on each connection, and one more for each failure but the third. */
const FIRST_ATTEMPTS = CONCURRENCY + 2;
/** After 0.5, 1, 2, 4, 8, 16 and 30 s, each up to a fifth shorter. */
const PROBES = 7;

/** A consumer that is away for a minute, and what happens when it is back. */
export const outage: Benchmark = {
  name: 'outage',
  async run(bench) {
    const load = await bench.load();
    const { consumer, url: webhook_url } = await bench.consumer({ port: 0, keeps: true, secret: SECRET });
    const loop = await bench.program<BareLoopVerbs>(new URL('./support/bare-loop.ts', import.meta.url));
    const daemon = await bench.daemon({ webhook_url });
    const bare = { url: webhook_url, requests: QUEUED, concurrency: CONCURRENCY, secret: SECRET };
    await loop.ask('send', bare);
    await consumer.ask('count', null);
    await loop.ask('send', bare);
    const bare_count = await consumer.ask('count', null);
    await untilDelivered(daemon);

    await consumer.ask('close', null);
    const began_ms = nowMs();
    const attempts = await attemptsOf(daemon);
    const { next } = await load.ask('publish', { url: daemon.url, connections: 64, publishes: QUEUED });
    await sleepMs(OUTAGE_MS - (nowMs() - began_ms));
    const probes = (await attemptsOf(daemon)) - attempts;
    const back_ms = nowMs();
    await consumer.ask('listen', { port: Number(new URL(webhook_url).port), keeps: true, secret: SECRET });
    const live = { url: daemon.url, connections: 4, first: next, interval_ms: LIVE_INTERVAL_MS };
    await untilDelivered(daemon, QUEUED - 1);
    await load.ask('publish', { ...live, publishes: LIVE });
    await untilDelivered(daemon);

    const received = (await consumer.ask('received', null)).filter(
      ({ arrived_ms }) => first(arrived_ms) > back_ms,
    );
    const backlog = received.filter(({ n }) => n !== null && n < next);
    if (backlog.length !== QUEUED) throw new Error(`${backlog.length} of ${QUEUED} arrived`);
    reportRate(bench, bare_count, backlog);
    bench.report({
      name: `attempts in an outage of ${OUTAGE_MS / 1000} s with ${QUEUED} queued`,
      ...{ bare: '', ours: String(probes), ratio: '', wanted: `≤ ${FIRST_ATTEMPTS + PROBES}` },
      verdict: probes <= FIRST_ATTEMPTS + PROBES ? 'ok' : 'missed',
    });
    reportOvertaken(bench, received);
  },
};

function reportRate(
  bench: Bench,
  bare: { requests: number; first_ms: number; last_ms: number },
  backlog: Received[],
): void {
  const arrivals = backlog.map(({ arrived_ms }) => first(arrived_ms)).sort((a, b) => a - b);
  // Until the probe has succeeded nothing else is sent.
  const took_ms = (arrivals.at(-1) ?? 0) - (arrivals[1] ?? 0);
  bench.report(
    comparison({
      name: `backlog of ${QUEUED} after an outage; bare: a dispatch loop`,
      bare: (bare.requests / (bare.last_ms - bare.first_ms)) * 1000,
      ours: (arrivals.length / took_ms) * 1000,
      ...{ unit: 'requests/s', wanted: 0.5, wants: 'at least' },
    }),
  );
}

/** How many later events came before an event at most: with a queue in order, no more than there are connections. */
function reportOvertaken(bench: Bench, received: Received[]): void {
  const in_order = received.sort((a, b) => first(a.arrived_ms) - first(b.arrived_ms));
  let highest = 0;
  let most = 0;
  for (const { sequence } of in_order) {
    highest = Math.max(highest, sequence);
    most = Math.max(most, highest - sequence);
  }
  bench.report({
    name: 'events of the drain and after it, overtaken by later ones at most',
    ...{ bare: '', ours: figure(most), ratio: '', wanted: `≤ ${2 * CONCURRENCY}` },
    verdict: most <= 2 * CONCURRENCY ? 'ok' : 'missed',
  });
}

function first(arrived_ms: number[]): number {
  return arrived_ms[0] as number;
}

async function untilDelivered(daemon: Daemon, left = 0): Promise<void> {
  while ((await daemon.outbox()).pending > left) await sleepMs(50);
}

async function attemptsOf(daemon: Daemon): Promise<number> {
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  const counts = [...metrics.matchAll(/^sandboxd_delivery_attempts_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}
