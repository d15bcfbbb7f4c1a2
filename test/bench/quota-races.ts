import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { claimsAtOnce } from '../support/manager/claim-race.ts';
import { race } from '../support/manager/cursor-race.ts';
import { Client } from '../support/manager/manager-client.ts';
import { firstToken, ManagerProgram } from '../support/manager-program.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';
import { HAS_REDIS, RedisServer } from '../support/redis.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { nowMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { figure, skipped } from './support/table.ts';

const CLAIMS = sized(200, 10);
const ROUNDS = sized(50, 1);
const WRITERS = 8;
const WINDOWS = sized(100_000, 800);

/** Many claims at once where one place is left, again and again: exactly one is admitted. */
export const claimsForOnePlace: Benchmark = {
  name: 'claims-for-one-place',
  async run(bench) {
    await claimRounds(bench, 'SQLite', sqliteUrl(bench), []);
    const name = 'on PostgreSQL, two replicas';
    if (!postgresPrograms() || !HAS_REDIS) {
      return bench.report(skipped(`claims for one place ${name}`, 'PostgreSQL or redis-server is missing'));
    }
    const [postgres, redis] = [await startPostgres(), await RedisServer.start()];
    try {
      const shared = ['--redis', redis.url, '--replicas', '2'];
      await claimRounds(bench, name.slice(3), await postgres.database(), shared, shared);
    } finally {
      await redis.stop();
      await postgres.stop();
    }
  },
};

/** Many writers, one reader who follows the cursor: every window once. */
export const usageCursor: Benchmark = {
  name: 'usage-cursor',
  async run(bench) {
    await cursorRace(bench, 'SQLite', sqliteUrl(bench));
    if (!postgresPrograms())
      return bench.report(skipped('usage cursor on PostgreSQL', 'PostgreSQL is missing'));
    const postgres = await startPostgres();
    try {
      await cursorRace(bench, 'PostgreSQL', await postgres.database());
    } finally {
      await postgres.stop();
    }
  },
};

function sqliteUrl(bench: Bench): string {
  return `sqlite:${join(bench.folder(), 'manager.db')}`;
}

/** One replica for each list of further options. */
async function claimRounds(bench: Bench, where: string, database: string, ...replicas: string[][]) {
  const folder = bench.folder();
  const config = join(folder, 'config.yaml');
  const quotas = 'default_team_quotas:\n  - dimension: active_sandboxes\n    limit_value: 10\n';
  writeFileSync(config, `database: ${database}\nruntime: none\nlisten: 127.0.0.1:0\n${quotas}`);
  const token = await firstToken(database, 'sandboxes:write', 'quota:read');
  const programs: ManagerProgram[] = [];
  try {
    for (const more of replicas) {
      const key = ['--secret-key-file', join(folder, 'key')];
      programs.push(await ManagerProgram.start(['--config', config, ...key, ...more]));
    }
    const clients = programs.map((program) => new Client(() => program.url, token));
    for (let i = 1; i < 10; i++) await clients[0]?.claim();
    const began_ms = nowMs();
    let wrong = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const { admitted, refused, active } = await claimsAtOnce(clients, CLAIMS);
      if (admitted !== 1 || refused !== CLAIMS - 1 || active !== 10) wrong += 1;
    }
    bench.report({
      name: `${CLAIMS} claims at once for one place on ${where}, ${ROUNDS} rounds`,
      ...{ bare: '', ours: `${wrong} wrong in ${figure((nowMs() - began_ms) / 1_000)} s`, ratio: '' },
      ...{ wanted: '0 wrong', verdict: wrong === 0 ? 'ok' : 'broken' },
    });
  } finally {
    for (const program of programs) await program.end('SIGKILL');
  }
}

async function cursorRace(bench: Bench, where: string, database: string) {
  const began_ms = nowMs();
  const { missed, repeated } = await race(database, WRITERS, WINDOWS / WRITERS);
  bench.report({
    name: `${WINDOWS} windows of ${WRITERS} writers read meanwhile by one cursor on ${where}`,
    ...{
      bare: '',
      ours: `${missed} missed, ${repeated} twice, in ${figure((nowMs() - began_ms) / 1_000)} s`,
      ratio: '',
    },
    ...{ wanted: 'every one once', verdict: missed === 0 && repeated === 0 ? 'ok' : 'broken' },
  });
}
