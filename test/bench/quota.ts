import { Redis } from 'ioredis';
import { systemClock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import { LocalAuthority } from '../../src/manager/quotas/local-authority.ts';
import { RedisAuthority } from '../../src/manager/quotas/redis-authority.ts';
import { HAS_REDIS, RedisServer } from '../support/redis.ts';
import type { Benchmark } from './support/bench.ts';
import { median, nowMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { comparison, figure, skipped } from './support/table.ts';

const TEAMS = 100;
const POLICY = { limit_value: 1_000_000, interval_ms: 1_000, burst_value: 1_000_000_000 };
const LOCAL_DRAWS = sized(1_000_000, 1_000);
const LOCAL_WANTED = 1_000_000;
const IN_FLIGHT = 32;
const REDIS_DRAWS = sized(20_000, 200);
const TURNS = sized(8, 1);

const names = Array.from({ length: TEAMS }, (_, i) => ({
  team_id: `team-${i}`,
  dimension: 'api_requests' as const,
}));
const nameOf = (i: number) => names[i % TEAMS] as (typeof names)[number];

/** Decisions a second in one process. */
export const localDecision: Benchmark = {
  name: 'local-decision',
  async run(bench) {
    const authority = new LocalAuthority(systemClock);
    const turns: number[] = [];
    for (let turn = 0; turn < 4; turn++) {
      const began_ms = nowMs();
      for (let i = 0; i < LOCAL_DRAWS; i++) await authority.draw(nameOf(i), POLICY, 1);
      turns.push((LOCAL_DRAWS * 1_000) / (nowMs() - began_ms));
    }
    const per_second = median(turns.slice(1));
    bench.report({
      name: 'rate decisions in process',
      bare: '',
      ours: `${figure(per_second)} /s`,
      ratio: '',
      wanted: `≥ ${figure(LOCAL_WANTED)} /s`,
      verdict: per_second >= LOCAL_WANTED ? 'ok' : 'missed',
    });
  },
};

/** A decision in Redis against a script that does nothing, over the same kind of connection. */
export const redisDecision: Benchmark = {
  name: 'redis-decision',
  async run(bench) {
    const name = `rate decision in Redis, ${IN_FLIGHT} in flight; bare: empty script`;
    if (!HAS_REDIS) return bench.report(skipped(name, 'redis-server is missing'));
    const server = await RedisServer.start();
    const options = { url: server.url, region_id: 'bench', log: createLog('silent') };
    const authority = await RedisAuthority.open(options);
    const redis = new Redis(server.url);
    try {
      const sha = (await redis.script('LOAD', 'return 1')) as string;
      const key = (i: number) => `sandbox-manager:quota:bench:${nameOf(i).team_id}:api_requests`;
      const bare = (i: number) => redis.evalsha(sha, 1, key(i), 1_000_000, 1_000, 1_000_000_000, 1);
      const ours = async (i: number) => {
        const decision = await authority.draw(nameOf(i), POLICY, 1);
        if (decision.outcome !== 'admitted') throw new Error(`not admitted: ${JSON.stringify(decision)}`);
      };
      const took: { bare: number[]; ours: number[] } = { bare: [], ours: [] };
      await each(bare);
      await each(ours);
      for (let turn = 0; turn < TURNS; turn++) {
        took.bare.push(await each(bare));
        took.ours.push(await each(ours));
      }
      const ratio = median(took.ours.map((value, i) => value / (took.bare[i] as number)));
      const figures = { bare: median(took.bare), ours: median(took.ours), ratio };
      bench.report(comparison({ name, ...figures, unit: 'µs', wanted: 1.3, wants: 'at most' }));
    } finally {
      redis.disconnect();
      await authority.close();
      await server.stop();
    }
  },
};

/** Microseconds for one of many that are asked with a fixed number in flight. */
async function each(ask: (i: number) => Promise<unknown>): Promise<number> {
  let asked = 0;
  const worker = async () => {
    while (asked < REDIS_DRAWS) await ask(asked++);
  };
  const began_ms = nowMs();
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  return ((nowMs() - began_ms) * 1_000) / REDIS_DRAWS;
}
