import { join } from 'node:path';
import { sql } from 'kysely';
import pg from 'pg';
import { systemClock } from '../../src/base/clock.ts';
import { managerConfig } from '../../src/manager/config/config.ts';
import { openDatabase, type Transaction } from '../../src/manager/database/database.ts';
import { SandboxAdmission } from '../../src/manager/quotas/admission.ts';
import { NodeCapacity } from '../../src/manager/quotas/node-capacity.ts';
import { QuotaMetrics } from '../../src/manager/quotas/quota-metrics.ts';
import { QuotaPolicies } from '../../src/manager/quotas/quota-policies.ts';
import { QuotaStore } from '../../src/manager/quotas/quota-store.ts';
import { type ManagedSandboxRow, SandboxStore } from '../../src/manager/sandboxes/sandbox-store.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { median, nowMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { comparison, figure, skipped } from './support/table.ts';

const CONNECTIONS = 20;
const TURN_MS = sized(1_000, 100);
const TURNS = sized(5, 1);
/** Of each team while it is measured. */
const ACTIVE_SANDBOXES = 50;

type Run = (place: number) => Promise<void>;

/**
 * What quotas add to a claim on PostgreSQL, lock, count and comparison in a transaction, against a transaction that
 * changes one row; and the claim's first transaction as a whole. Once with a team for each connection, once with one.
 */
export const claimAdmission: Benchmark = {
  name: 'claim-admission',
  async run(bench) {
    const name = `on PostgreSQL, ${CONNECTIONS} connections`;
    if (!postgresPrograms()) return bench.report(skipped(`claim admission ${name}`, 'PostgreSQL is missing'));
    const server = await startPostgres();
    const url = await server.database();
    const bare = await bareUpdates(url);
    const ours = await claims(bench, url);
    try {
      for (const [teams, placeOf] of [
        ['a team each', (worker: number) => worker],
        ['one team', () => 0],
      ] as const) {
        const compare = (run: Run, reset: () => Promise<unknown>) => inTurns(bare.run, run, placeOf, reset);
        const admission = await compare(ours.admission, ours.reset);
        const title = `claim admission ${name}, ${teams}; bare: UPDATE of one row`;
        bench.report(comparison({ name: title, ...admission, unit: '/s', wanted: 0.7, wants: 'at least' }));
        const { bare: bare_per_s, ours: ours_per_s, ratio } = await compare(ours.claim, ours.reset);
        bench.report({
          name: `a claim's first transaction ${name}, ${teams}`,
          ...{
            bare: `${figure(bare_per_s)} /s`,
            ours: `${figure(ours_per_s)} /s`,
            ratio: `${figure(ratio)} ×`,
          },
          ...{ wanted: 'to know', verdict: 'ok' },
        });
      }
    } finally {
      await bare.end();
      await ours.end();
      await server.stop();
    }
  },
};

async function inTurns(
  bare: Run,
  ours: Run,
  placeOf: (worker: number) => number,
  reset: () => Promise<unknown>,
) {
  const rates: { bare: number[]; ours: number[] } = { bare: [], ours: [] };
  for (let turn = 0; turn <= TURNS; turn++) {
    await reset();
    const bare_per_s = await perSecond((worker) => bare(placeOf(worker)));
    const ours_per_s = await perSecond((worker) => ours(placeOf(worker)));
    if (turn === 0) continue; // both warm up
    rates.bare.push(bare_per_s);
    rates.ours.push(ours_per_s);
  }
  const ratio = median(rates.ours.map((value, i) => value / (rates.bare[i] as number)));
  return { bare: median(rates.bare), ours: median(rates.ours), ratio };
}

async function bareUpdates(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
  await pool.query('CREATE TABLE IF NOT EXISTS counters (id integer PRIMARY KEY, count bigint)');
  await pool.query('INSERT INTO counters SELECT i, 0 FROM generate_series(0, $1) i ON CONFLICT DO NOTHING', [
    CONNECTIONS,
  ]);
  return {
    async run(place: number) {
      const client = await pool.connect();
      await client.query('BEGIN');
      await client.query('UPDATE counters SET count = count + 1 WHERE id = $1', [place]);
      await client.query('COMMIT');
      client.release();
    },
    end: () => pool.end(),
  };
}

/** A claim up to where the runtime is asked, with and without its own row. */
async function claims(bench: Bench, url: string) {
  const database = await openDatabase(url);
  const sandboxes = new SandboxStore(database);
  const store = new QuotaStore(database);
  await store.reconcile(
    [{ dimension: 'active_sandboxes', limit_value: 1_000_000_000, interval_ms: null, burst_value: null }],
    [],
  );
  const folder = bench.folder();
  const options = { database: url, runtime: 'none', data_dir: folder, secret_key_file: join(folder, 'key') };
  const node = NodeCapacity.open(managerConfig(options, {}, {}), null, store);
  const policies = new QuotaPolicies(store, systemClock);
  const admission = new SandboxAdmission(store, policies, node, new QuotaMetrics());
  let ids = 0;
  const rowIn = (place: number) => rowOf(`team_${place}`, `sbx_${++ids}`);
  const write = (row: ManagedSandboxRow, take: (tx: Transaction) => Promise<void>) =>
    sandboxes.write(async (tx) => {
      await admission.admit(tx, row);
      await take(tx);
    });
  return {
    admission: (place: number) => write(rowIn(place), async () => {}),
    async claim(place: number) {
      const row = rowIn(place);
      await write(row, (tx) => sandboxes.insert(tx, row));
    },
    /** Teams are as large as teams are. */
    async reset() {
      await sql`truncate sandboxes cascade`.execute(database.db);
      await sandboxes.write(async (tx) => {
        for (let i = 0; i < CONNECTIONS * ACTIVE_SANDBOXES; i++) {
          await sandboxes.insert(tx, rowIn(i % CONNECTIONS));
        }
      });
      await sql`analyze sandboxes`.execute(database.db);
    },
    end: () => database.close(),
  };
}

function rowOf(team_id: string, sandbox_id: string): ManagedSandboxRow {
  const now_ms = Date.now();
  return {
    ...{ sandbox_id, team_id, template_id: 'default', status: 'starting', operation: 'claiming' },
    ...{
      operation_owner: 'bench',
      operation_until_ms: now_ms,
      operation_fence: now_ms,
      auto_resume: 0,
      pod_name: null,
    },
    persistence: null,
    ...{
      runtime_generation: 1,
      memory_mib: 512,
      cpu_millis: 100,
      held_mib: null,
      resources: '{"memory":"512Mi","cpu":0.1}',
    },
    ...{
      metadata: null,
      disk_mib: null,
      bandwidth: null,
      network: null,
      webhook_url: null,
      webhook_secret_sealed: null,
      watch_dir: null,
      watch_ignore: null,
      webhook_events: null,
      webhook_retry: null,
      env_sealed: null,
      env_names_sealed: null,
    },
    ...{
      ttl_s: 0,
      hard_ttl_s: 0,
      idle_ttl_s: 0,
      idle_expires_at_ms: null,
      expires_at_ms: null,
      hard_expires_at_ms: null,
      claimed_at_ms: null,
    },
    ...{ created_at_ms: now_ms, updated_at_ms: now_ms, deleted_at_ms: null, node: 'local' },
  };
}

/** How often a second all connections together get it done. */
async function perSecond(run: (worker: number) => Promise<void>): Promise<number> {
  const began_ms = nowMs();
  let done = 0;
  const work = async (_: unknown, worker: number) => {
    while (nowMs() - began_ms < TURN_MS) {
      await run(worker);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
  return (done * 1_000) / (nowMs() - began_ms);
}
