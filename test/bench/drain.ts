import type { BareLoopVerbs } from './support/bare-loop.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import type { Consuming, Counted } from './support/consumer.ts';
import { SECRET } from './support/daemon.ts';
import { median, sleepMs } from './support/numbers.ts';
import { cpuMs } from './support/process-figures.ts';
import type { Sink } from './support/sink.ts';
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
    const { cpu_us } = await compare(bench, {
      name: `drain of ${PENDING} pending; bare: a dispatch loop`,
      consumer: await bench.sink(),
      ...{ pending: PENDING, wanted: 0.75 },
    });
    bench.report({
      name: `CPU time of a row of ${PENDING} that are drained`,
      ...{ bare: '', ours: `${figure(cpu_us)} µs`, ratio: '', wanted: `≤ ${CPU_OF_ROW_US} µs` },
      verdict: cpu_us <= CPU_OF_ROW_US ? 'ok' : 'missed',
    });
    await compare(bench, {
      name: `drain of ${PENDING} pending to an HTTP server of Node; bare: a dispatch loop`,
      consumer: await nodeConsumer(bench, { is_library: true }),
      ...{ pending: PENDING, wanted: 0.75 },
    });
  },
};

/** How fast a backlog goes to a consumer that takes its time with each answer: what its connections can carry at most. */
export const farConsumer: Benchmark = {
  name: 'far-consumer',
  async run(bench) {
    await compare(bench, {
      name: `drain of ${FAR_PENDING} to a consumer ${FAR_MS} ms away; bare: a dispatch loop`,
      consumer: await nodeConsumer(bench, { delay_ms: FAR_MS }),
      ...{ pending: FAR_PENDING, wanted: 0.95 },
    });
  },
};

/** A consumer in a Node of its own. */
async function nodeConsumer(bench: Bench, consuming: Omit<Consuming, 'port'>): Promise<Sink> {
  const { consumer, url } = await bench.consumer({ ...consuming, port: 0 });
  const port = Number(new URL(url).port);
  return {
    url,
    listen: async () => void (await consumer.ask('listen', { ...consuming, port })),
    close: () => consumer.ask('close', null),
    counted: () => consumer.ask('count', null),
  };
}

interface Comparison {
  name: string;
  consumer: Sink;
  pending: number;
  /** Of the dispatch loop's rate. */
  wanted: number;
}

/** A dispatch loop and a daemon with as many pending records in turn; reports the rates, gives the CPU time of a row. */
async function compare(bench: Bench, { name, consumer, pending, wanted }: Comparison) {
  const load = await bench.load();
  const loop = await bench.program<BareLoopVerbs>(new URL('./support/bare-loop.ts', import.meta.url));
  const { url, pid } = await bench.daemon({ webhook_url: consumer.url });
  const bare: number[] = [];
  const ours: number[] = [];
  const cpu_us: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const requests = { requests: pending, concurrency: CONCURRENCY, secret: SECRET };
    await loop.ask('send', { url: consumer.url, ...requests });
    bare.push(await rate(() => consumer.counted(), pending));
    await consumer.close();
    await load.ask('publish', { url, connections: 64, publishes: pending });
    const before_ms = cpuMs(pid);
    await consumer.listen();
    ours.push(await rate(() => consumer.counted(), pending));
    cpu_us.push(((cpuMs(pid) - before_ms) * 1_000) / pending);
  }
  // The first turn of each side is slower: it is not warm.
  const best = (values: number[]) => Math.max(...values);
  bench.report(
    comparison({
      ...{ name, bare: best(bare), ours: best(ours), unit: 'requests/s', wanted, wants: 'at least' },
    }),
  );
  return { cpu_us: median(cpu_us) };
}

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
