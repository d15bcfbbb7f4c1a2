import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { listRoutes } from '../support/manager/list-routes.ts';
import { Client } from '../support/manager/manager-client.ts';
import { ManagerProgram } from '../support/manager-program.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../support/postgres.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { DIST } from './support/daemon.ts';
import { median, nowMs, percentile, sleepMs } from './support/numbers.ts';
import { cpuMs, memoryBytes } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { figure, skipped } from './support/table.ts';

const SANDBOXES = sized(10_000, 40);
/** One sandbox in so many has as many `env_vars` as may be. */
const LARGE_EACH = 20;
const LARGE = 'x'.repeat(64 * 1024 - 64);
/** Rows of deliveries, events and windows that the team has besides. */
const ROWS = sized(200_000, 100);
const SETTLE_MS = sized(20_000, 300);
const REST_MS = sized(60_000, 500);
const AT_ONCE = 8;
const TRIES = 20;
const TRY_AGAIN_MS = 500;
const READS = sized(100, 3);
const READS_TO_WARM_UP = sized(30, 1);
const TEAM = 'team_bench';
const SCOPES = ['sandboxes:write', 'webhooks:read', 'usage:read', 'quota:read', 'admin'].flatMap((scope) => [
  '--scope',
  scope,
]);
const CPU_SHARE = 0.01;
const MEMORY_MB = 50;
const PAGE_MS = 20;

/** What many sandboxes of one team take of the manager, without a runtime: at rest, and in lists. */
export const fleet: Benchmark = {
  name: 'fleet',
  async run(bench) {
    if (!postgresPrograms()) return bench.report(skipped('fleet', 'PostgreSQL is missing'));
    const server = await startPostgres();
    bench.onEnd(() => server.end());
    const [empty_url, url] = [await server.database(), await server.database()];
    const empty = await atRest(bench, server, empty_url);
    await fill(bench, url);
    const full = await atRest(bench, server, url);
    const { cpu, database_cpu, memory_mb } = full;
    bench.report({
      name: `CPU of the manager at rest with ${SANDBOXES} sandboxes; bare: with none`,
      bare: `${figure(empty.cpu * 100)} %`,
      ours: `${figure(cpu * 100)} %`,
      ratio: '',
      wanted: `< ${CPU_SHARE * 100} %`,
      verdict: cpu < CPU_SHARE ? 'ok' : 'missed',
      measured: { ours: cpu * 100, ratio: cpu / empty.cpu },
    });
    bench.report({
      name: 'CPU of PostgreSQL meanwhile',
      bare: `${figure(empty.database_cpu * 100)} %`,
      ours: `${figure(database_cpu * 100)} %`,
      ...{ ratio: '', wanted: 'to know', verdict: 'ok' },
      measured: { ours: database_cpu * 100, ratio: database_cpu / empty.database_cpu },
    });
    bench.report({
      name: 'resident memory of the manager meanwhile',
      bare: `${figure(empty.memory_mb)} MB`,
      ours: `${figure(memory_mb)} MB`,
      ratio: '',
      wanted: `+ ${MEMORY_MB} MB`,
      verdict: memory_mb - empty.memory_mb <= MEMORY_MB ? 'ok' : 'missed',
      measured: { ours: memory_mb, ratio: memory_mb / empty.memory_mb },
    });
    await lists(bench, url);
  },
};

async function managerOn(bench: Bench, url: string): Promise<ManagerProgram> {
  const options = ['--listen', '127.0.0.1:0', '--runtime', 'none', '--database', url];
  const key = ['--secret-key-file', join(FOLDERS.get(url) ?? place(bench, url), 'key')];
  const manager = await ManagerProgram.start([...options, ...key], undefined, {
    program: join(DIST, 'sandbox-manager.cjs'),
  });
  bench.onEnd(() => manager.end('SIGTERM'));
  return manager;
}

/** Where the key of each database is. */
const FOLDERS = new Map<string, string>();

function place(bench: Bench, url: string): string {
  const folder = bench.folder();
  FOLDERS.set(url, folder);
  return folder;
}

async function atRest(bench: Bench, { pid: server }: PostgresServer, url: string) {
  const manager = await managerOn(bench, url);
  const { pid = 0 } = manager.child;
  await sleepMs(SETTLE_MS);
  const [manager_ms, database_ms] = [cpuMs(pid), cpuOfChildren(server)];
  await sleepMs(REST_MS);
  const cpu = (cpuMs(pid) - manager_ms) / REST_MS;
  const database_cpu = (cpuOfChildren(server) - database_ms) / REST_MS;
  const memory_mb = memoryBytes(pid) / 1e6;
  await manager.end('SIGTERM');
  return { cpu, database_cpu, memory_mb };
}

/** The CPU time of the processes that one has started, in ms. */
function cpuOfChildren(parent: number): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.reduce((sum, each) => sum + (isChildOf(each, parent) ? cpuMs(Number(each)) : 0), 0);
}

function isChildOf(pid: string, parent: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent;
  } catch {
    return false; // it has gone meanwhile
  }
}

async function clientOf(manager: ManagerProgram, url: string): Promise<Client> {
  const program = join(DIST, 'sandbox-manager.cjs');
  const command = [program, 'token', 'create', '--team', TEAM, ...SCOPES, '--database', url];
  const { stdout } = await promisify(execFile)(process.execPath, command);
  return new Client(() => manager.url, stdout.trim());
}

/** A busy machine keeps the database from answering in time. */
async function claim(owner: Client, env_vars: Record<string, string> | undefined): Promise<string> {
  const config = { env_vars, metadata: { owner: 'me' }, ttl: 86_400, hard_ttl: 172_800 };
  for (let tries = 1; ; tries++) {
    const { status, data } = await owner.post('/api/v1/sandboxes', { config });
    if (status === 201) return data.sandbox_id;
    if (status !== 503 || tries === TRIES) throw new Error(`a claim was answered ${status}`);
    await sleepMs(TRY_AGAIN_MS);
  }
}

/** Claims sandboxes, copies the rows of one without `env_vars`, and adds what all of them would have left behind. */
async function fill(bench: Bench, url: string): Promise<void> {
  const manager = await managerOn(bench, url);
  const owner = await clientOf(manager, url);
  const claimed = SANDBOXES / LARGE_EACH;
  const left = Array.from({ length: claimed }, (_, i) => i).values();
  const worker = async () => {
    for (const _ of left) await claim(owner, { LARGE });
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const copied = await claim(owner, undefined);
  await manager.end('SIGTERM');
  const database = new pg.Client({ connectionString: url });
  await database.connect();
  const copies = SANDBOXES - claimed - 1;
  await database.query(
    `create temporary table copies as select 'sbx_' || gen_random_uuid() as id from generate_series(1, ${copies})`,
  );
  for (const table of ['sandboxes', 'sandbox_metadata', 'leases', 'event_positions']) {
    const { rows } = await database.query<{ name: string }>(
      `select column_name as name from information_schema.columns where table_name = '${table}' and column_name <> 'sandbox_id'`,
    );
    const columns = rows.map(({ name }) => `"${name}"`).join(', ');
    await database.query(
      `insert into ${table} (sandbox_id, ${columns}) select id, ${columns} from ${table}, copies where sandbox_id = '${copied}'`,
    );
  }
  const ids = `select sandbox_id, row_number() over () - 1 as place from sandboxes`;
  const rows = `from generate_series(1, ${ROWS}) as i join ids on ids.place = i % ${SANDBOXES}`;
  for (const [table, values] of [
    [
      `outbox (event_id, sandbox_id, team_id, event_type, endpoint, url, headers, body, state, probe_ms, deadline_ms, attempts,
        failures, created_at_ms, finished_at_ms, retry)`,
      `'evt_' || i, sandbox_id, '${TEAM}', 'agent.event', 'endpoint', 'http://localhost/', '{}', '{}', 'delivered', 0, 0, 1, 0, i,
        extract(epoch from now())::bigint * 1000, 'transient'`,
    ],
    [
      'events (event_id, team_id, sandbox_id, event_type, body, recorded_at_ms)',
      `'evt_' || i, '${TEAM}', sandbox_id, 'sandbox.ready', '{}', extract(epoch from now())::bigint * 1000`,
    ],
    [
      `usage_windows (window_id, team_id, region_id, cluster_id, window_type, subject_type, subject_id, sandbox_id,
        window_start_ms, window_end_ms, value, unit, recorded_at_ms)`,
      `'win_' || i, '${TEAM}', '', '', 'sandbox.runtime_mib_milliseconds', 'sandbox', sandbox_id, sandbox_id, 0, 1, 1, '', 1`,
    ],
  ]) {
    await database.query(`with ids as (${ids}) insert into ${table} select ${values} ${rows}`);
  }
  await database.query('vacuum analyze');
  await database.end();
}

/** The time of each list, narrowed by each of its parameters. */
async function lists(bench: Bench, url: string): Promise<void> {
  const manager = await managerOn(bench, url);
  const owner = await clientOf(manager, url);
  for (const path of await listRoutes(manager.url, 'one')) {
    const times: number[] = [];
    for (let i = 0; i < READS_TO_WARM_UP + READS; i++) {
      const began_ms = nowMs();
      const { status } = await owner.get(path);
      if (status !== 200) throw new Error(`${path} was answered ${status}`);
      times.push(nowMs() - began_ms);
    }
    const measured = times.slice(READS_TO_WARM_UP);
    const [p50, p99] = [median(measured), percentile(measured, 0.99)];
    bench.report({
      name: `${path}, p50 and p99`,
      bare: '',
      ours: `${figure(p50)}, ${figure(p99)} ms`,
      ratio: '',
      wanted: `< ${PAGE_MS} ms`,
      verdict: p99 < PAGE_MS ? 'ok' : 'missed',
      measured: { ours: p50, ratio: p99 / p50 },
    });
  }
}
