import type { Benchmark } from './support/bench.ts';
import { nowMs, sleepMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { comparison, figure } from './support/table.ts';

const CONNECTIONS = 64;
const RUN_MS = sized(30_000, 500);
const BARE_MS = sized(4_000, 200);
const WARM_UP_MS = sized(1_500, 100);
const DELIVERED_SHARE = 0.9;

/** Publishing and delivering at once: neither may starve the other. */
export const deliver: Benchmark = {
  name: 'deliver',
  async run(bench) {
    const flood = await bench.flood();
    const sink = await bench.sink();
    const { url } = await bench.daemon({ webhook_url: sink.url });
    const { url: bare_url } = await bench.signingOnly();
    const bare = async (duration_ms: number) => {
      const result = await flood({ url: bare_url, connections: CONNECTIONS, duration_ms });
      return result.per_second;
    };
    await bare(WARM_UP_MS);
    await flood({ url, connections: CONNECTIONS, duration_ms: WARM_UP_MS });
    while ((await sink.counted()).requests > 0) await sleepMs(500);
    const before = await bare(BARE_MS);

    const started_ms = nowMs();
    const running = flood({ url, connections: CONNECTIONS, duration_ms: RUN_MS });
    const { acknowledged, per_second } = await running;
    const { requests } = await sink.counted();
    const took_s = (nowMs() - started_ms) / 1000;

    while ((await sink.counted()).requests > 0) await sleepMs(500);
    const signed_only = (before + (await bare(BARE_MS))) / 2;
    bench.report(
      comparison({
        name: 'publish, fast consumer; bare: signed, not stored',
        ...{ bare: signed_only, ours: per_second, unit: 'acks/s', wanted: 0.6, wants: 'at least' },
      }),
    );
    const share = requests / acknowledged;
    bench.report({
      name: `delivered in the same ${RUN_MS / 1000} s; bare: acknowledged`,
      bare: `${figure(acknowledged / took_s)} acks/s`,
      ours: `${figure(requests / took_s)} /s`,
      ratio: `${figure(share)} ×`,
      wanted: `≥ ${DELIVERED_SHARE} ×`,
      verdict: share >= DELIVERED_SHARE ? 'ok' : 'missed',
    });
  },
};
