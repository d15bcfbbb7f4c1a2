import type { Bench, Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import type { Flood } from './support/flood.ts';
import { inTurns } from './support/pairs.ts';
import { cpuMs } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { slowSync } from './support/slow-sync.ts';
import { comparison, figure, skipped } from './support/table.ts';

const CONNECTIONS = 64;
const CPU_OF_ACK_US = 110;
const CPU_RUN_MS = sized(5_000, 1_000);
const SLOW_SYNC_MS = 5;
const CLOUD_SYNC_MS = 2;

/** How many publishes are acknowledged while nobody consumes them. */
export const publish: Benchmark = {
  name: 'publish',
  async run(bench) {
    const flood = await bench.flood();
    const daemon = await bench.daemon({ webhook_url: DOWN_URL });
    const { url } = daemon;
    const without_storage = await inTurns(
      flood,
      { bare: await bench.withoutStorage(), ours: url },
      { connections: CONNECTIONS },
      ({ per_second }) => per_second,
    );
    bench.report(
      comparison({
        name: 'publish, consumer down; bare: no storage',
        ...without_storage,
        ...{ unit: 'acks/s', wanted: 1, wants: 'at least' },
      }),
    );
    const signing = await bench.signingOnly();
    const signed_only = await inTurns(
      flood,
      { bare: signing.url, ours: url },
      { connections: CONNECTIONS },
      ({ per_second }) => per_second,
    );
    bench.report(
      comparison({
        name: 'publish, consumer down; bare: signed, not stored',
        ...signed_only,
        ...{ unit: 'acks/s', wanted: 1, wants: 'at least' },
      }),
    );
    const bare_us = await cpuOfAck(flood, signing);
    const ours_us = await cpuOfAck(flood, daemon);
    bench.report({
      name: 'CPU time of an acknowledgement; bare: signed, not stored',
      ...{ bare: `${figure(bare_us)} µs`, ours: `${figure(ours_us)} µs` },
      ...{ ratio: `${figure(ours_us / bare_us)} ×`, wanted: `≤ ${CPU_OF_ACK_US} µs` },
      verdict: ours_us <= CPU_OF_ACK_US ? 'ok' : 'missed',
      measured: { ours: ours_us, ratio: ours_us / bare_us },
    });
    const row_per_commit = await inTurns(
      flood,
      { bare: await bench.rowPerCommit(), ours: url },
      { connections: CONNECTIONS },
      ({ per_second }) => per_second,
    );
    bench.report(
      comparison({
        name: 'publish, consumer down; bare: a row a commit',
        ...row_per_commit,
        ...{ unit: 'acks/s', wanted: 5, wants: 'at least' },
      }),
    );
  },
};

/** What each publish costs a server of CPU time, that of all its threads, in µs. */
async function cpuOfAck(flood: Flood, { url, pid }: { url: string; pid: number }): Promise<number> {
  const before_ms = cpuMs(pid);
  const { acknowledged } = await flood({ url, connections: CONNECTIONS, duration_ms: CPU_RUN_MS });
  return ((cpuMs(pid) - before_ms) / acknowledged) * 1000;
}

/** The same with one publisher: how long it waits for its answer, here and where a sync takes as long as in a cloud. */
export const lonePublish: Benchmark = {
  name: 'lone-publish',
  async run(bench) {
    const flood = await bench.flood();
    const compare = async (name: string, env?: NodeJS.ProcessEnv) => {
      const { url } = await bench.daemon({ webhook_url: DOWN_URL, ...(env && { env }) });
      const urls = { bare: await bench.rowPerCommit(env), ours: url };
      const pair = await inTurns(flood, urls, { connections: 1 }, ({ p50_ms }) => p50_ms);
      bench.report(comparison({ name, ...pair, unit: 'ms p50', wanted: 1.1, wants: 'at most' }));
    };
    await compare('publish, one connection; bare: a row a commit');
    const name = `publish, one connection, syncs ${CLOUD_SYNC_MS} ms slower; bare: a row a commit`;
    const env = slowSync(bench.folder(), CLOUD_SYNC_MS);
    if (env) await compare(name, env);
    else bench.report(skipped(name, 'no C compiler'));
  },
};

/** The same on a disk that takes its time. */
export const slowDisk: Benchmark = {
  name: 'slow-disk',
  async run(bench: Bench) {
    const name = `publish, syncs ${SLOW_SYNC_MS} ms slower; bare: a row a commit`;
    const env = slowSync(bench.folder(), SLOW_SYNC_MS);
    if (!env) return bench.report(skipped(name, 'no C compiler'));
    const { url } = await bench.daemon({ webhook_url: DOWN_URL, env });
    const pair = await inTurns(
      await bench.flood(),
      { bare: await bench.rowPerCommit(env), ours: url },
      { connections: CONNECTIONS },
      ({ per_second }) => per_second,
    );
    bench.report(comparison({ name, ...pair, unit: 'acks/s', wanted: 20, wants: 'at least' }));
  },
};
