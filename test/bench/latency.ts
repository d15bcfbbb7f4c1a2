import type { Benchmark } from './support/bench.ts';
import { percentile, sleepMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const INTERVAL_MS = 10;
const EVENTS = sized(2_000, 40);
const WARM_UP_EVENTS = sized(300, 5);
const P50_MS = 1;
/** Beyond the acknowledgement's own. */
const P99_MS = 5;

/** How much later than its acknowledgement an event is with the consumer, at a steady rate. */
export const latency: Benchmark = {
  name: 'latency',
  async run(bench) {
    const load = await bench.load();
    const { consumer, url: webhook_url } = await bench.consumer({ port: 0, keeps: true });
    const { url } = await bench.daemon({ webhook_url });
    const shape = { url, connections: 4, interval_ms: INTERVAL_MS, keeps: true };
    await load.ask('publish', { ...shape, publishes: WARM_UP_EVENTS });
    const { kept, p50_ms, p99_ms } = await load.ask('publish', { ...shape, publishes: EVENTS });
    await sleepMs(1_000);
    const arrived = new Map(
      (await consumer.ask('received', null)).map(({ event_id, arrived_ms }) => [event_id, arrived_ms[0]]),
    );
    const later_ms = kept.map((event) => (arrived.get(event.event_id) ?? Number.NaN) - event.acknowledged_ms);
    if (later_ms.some(Number.isNaN)) throw new Error('an acknowledged event did not arrive within a second');
    const row = (share: string, bare: number, ours: number, most: number) =>
      bench.report({
        name: `end to end at ${1000 / INTERVAL_MS}/s, ${share}; bare: acknowledged`,
        bare: `${figure(bare)} ms`,
        ours: `${ours < 0 ? '' : '+'}${figure(ours)} ms`,
        ratio: '',
        wanted: `≤ +${figure(most)} ms`,
        verdict: ours <= most ? 'ok' : 'missed',
      });
    row('p50', p50_ms, percentile(later_ms, 0.5), P50_MS);
    row('p99', p99_ms, percentile(later_ms, 0.99), P99_MS + p99_ms);
  },
};
