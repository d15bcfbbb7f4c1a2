import type { BareLoopVerbs } from './support/bare-loop.ts';
import type { Benchmark } from './support/bench.ts';
import type { Counted } from './support/consumer.ts';
import { SECRET } from './support/daemon.ts';
import { median, sleepMs } from './support/numbers.ts';
import { cpuMs } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { comparison, figure } from './support/table.ts';

const PENDING = sized(20_000, 300);
const CONCURRENCY = 16;
const TURNS = sized(3, 1);
const CPU_OF_ROW_US = 120;
const FAR_PENDING = sized(4_000, 100);
const FAR_MS = 20;

/** How fast a backlog goes to a consumer that comes back. */
export const drain: Benchmark = {
  name: 'drain',
  async run(bench) {
    const load = await bench.load();
    const sink = await bench.sink();
    const loop = await bench.program<BareLoopVerbs>(new URL('./support/bare-loop.ts', import.meta.url));
    const { url, pid } = await bench.daemon({ webhook_url: sink.url });
    const bare: number[] = [];
    const ours: number[] = [];
    const cpu_us: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      await loop.ask('send', {
        url: sink.url,
        requests: PENDING,
        concurrency: CONCURRENCY,
        secret: SECRET,
      });
      bare.push(await rate(() => sink.counted(), PENDING));
      await sink.close();
      await load.ask('publish', { url, connections: 64, publishes: PENDING });
      const before_ms = cpuMs(pid);
      await sink.listen();
      ours.push(await rate(() => sink.counted(), PENDING));
      cpu_us.push(((cpuMs(pid) - before_ms) * 1_000) / PENDING);
    }
    // The first turn of each side is slower: it is not warm.
    const best = (values: number[]) => Math.max(...values);
    bench.report(
      comparison({
        name: `drain of ${PENDING} pending; bare: a dispatch loop`,
        ...{ bare: best(bare), ours: best(ours), unit: 'requests/s', wanted: 0.75, wants: 'at least' },
      }),
    );
    bench.report({
      name: `CPU time of a row of ${PENDING} that are drained`,
      ...{ bare: '', ours: `${figure(median(cpu_us))} µs`, ratio: '', wanted: `≤ ${CPU_OF_ROW_US} µs` },
      verdict: median(cpu_us) <= CPU_OF_ROW_US ? 'ok' : 'missed',
    });
  },
};

/** How fast a backlog goes to a consumer that takes its time with each answer: what its connections can carry at most. */
export const farConsumer: Benchmark = {
  name: 'far-consumer',
  async run(bench) {
    const load = await bench.load();
    const { consumer, url: webhook_url } = await bench.consumer({ port: 0, delay_ms: FAR_MS });
    const loop = await bench.program<BareLoopVerbs>(new URL('./support/bare-loop.ts', import.meta.url));
    const { url } = await bench.daemon({ webhook_url });
    const counted = () => consumer.ask('count', null);
    const bare: number[] = [];
    const ours: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      const requests = { requests: FAR_PENDING, concurrency: CONCURRENCY, secret: SECRET };
      await loop.ask('send', { url: webhook_url, ...requests });
      bare.push(await rate(counted, FAR_PENDING));
      await consumer.ask('close', null);
      await load.ask('publish', { url, connections: 64, publishes: FAR_PENDING });
      await consumer.ask('listen', { port: Number(new URL(webhook_url).port), delay_ms: FAR_MS });
      ours.push(await rate(counted, FAR_PENDING));
    }
    bench.report(
      comparison({
        name: `drain of ${FAR_PENDING} to a consumer ${FAR_MS} ms away; bare: a dispatch loop`,
        ...{ bare: Math.max(...bare), ours: Math.max(...ours), unit: 'requests/s' },
        ...{ wanted: 0.95, wants: 'at least' },
      }),
    );
  },
};

/** Requests a second from the first to the last, once that many have come. `take` gives those since the last time. */
async function rate(take: () => Promise<Counted>, wanted: number): Promise<number> {
  let requests = 0;
  let first_ms = 0;
  let last_ms = 0;
  while (requests < wanted) {
    await sleepMs(100);
    const counted = await take();
    if (counted.requests === 0) continue;
    if (requests === 0) first_ms = counted.first_ms;
    requests += counted.requests;
    last_ms = counted.last_ms;
  }
  return (requests / (last_ms - first_ms)) * 1000;
}
