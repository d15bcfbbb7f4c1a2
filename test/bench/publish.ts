import type { Bench, Benchmark } from './support/bench.ts';
import { DOWN_URL } from './support/daemon.ts';
import { inTurns } from './support/pairs.ts';
import { slowSync } from './support/slow-sync.ts';
import { comparison, skipped } from './support/table.ts';

const CONNECTIONS = 64;
const SLOW_SYNC_MS = 5;
const CLOUD_SYNC_MS = 2;

/** How many publishes are acknowledged while nobody consumes them. */
export const publish: Benchmark = {
  name: 'publish',
  async run(bench) {
    const flood = await bench.flood();
    const { url } = await bench.daemon({ webhook_url: DOWN_URL });
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
        ...{ unit: 'acks/s', wanted: 0.8, wants: 'at least' },
      }),
    );
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

/** The same with one publisher: how long it waits for its answer, here and where a sync takes as long as in a cloud. */
export const lonePublish: Benchmark = {
  name: 'lone-publish',
  async run(bench) {
    const flood = await bench.flood();
    const compare = async (name: string, env?: NodeJS.ProcessEnv) => {
      const { url } = await bench.daemon({ webhook_url: DOWN_URL, ...(env && { env }) });
      const urls = { bare: await bench.rowPerCommit(env), ours: url };
      const pair = await inTurns(flood, urls, { connections: 1 }, ({ p50_ms }) => p50_ms);
      bench.report(comparison({ name, ...pair, unit: 'ms p50', wanted: 1.3, wants: 'at most' }));
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
