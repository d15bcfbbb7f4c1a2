import type { BareLoopVerbs } from './support/bare-loop.ts';
import type { Benchmark } from './support/bench.ts';
import { SECRET } from './support/daemon.ts';
import { sleepMs } from './support/numbers.ts';
import type { Sink } from './support/sink.ts';
import { sized } from './support/size.ts';
import { comparison } from './support/table.ts';

const PENDING = sized(20_000, 300);
const CONCURRENCY = 16;
const TURNS = sized(3, 1);

/** How fast a backlog goes to a consumer that comes back. */
export const drain: Benchmark = {
  name: 'drain',
  async run(bench) {
    const load = await bench.load();
    const sink = await bench.sink();
    const loop = await bench.program<BareLoopVerbs>(new URL('./support/bare-loop.ts', import.meta.url));
    const { url } = await bench.daemon({ webhook_url: sink.url });
    const bare: number[] = [];
    const ours: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      await loop.ask('send', {
        url: sink.url,
        requests: PENDING,
        concurrency: CONCURRENCY,
        secret: SECRET,
      });
      bare.push(await rate(sink, PENDING));
      await sink.close();
      await load.ask('publish', { url, connections: 64, publishes: PENDING });
      await sink.listen();
      ours.push(await rate(sink, PENDING));
    }
    // The first turn of each side is slower: it is not warm.
    const best = (values: number[]) => Math.max(...values);
    bench.report(
      comparison({
        name: `drain of ${PENDING} pending; bare: a dispatch loop`,
        ...{ bare: best(bare), ours: best(ours), unit: 'requests/s', wanted: 0.6, wants: 'at least' },
      }),
    );
  },
};

/** Requests a second from the first to the last, once that many have come. */
async function rate(sink: Sink, wanted: number): Promise<number> {
  let requests = 0;
  let first_ms = 0;
  let last_ms = 0;
  while (requests < wanted) {
    await sleepMs(100);
    const counted = await sink.counted();
    if (counted.requests === 0) continue;
    if (requests === 0) first_ms = counted.first_ms;
    requests += counted.requests;
    last_ms = counted.last_ms;
  }
  return (requests / (last_ms - first_ms)) * 1000;
}
