import { CompiledQuery, type KyselyPlugin, sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { makeApi } from '../../src/manager/api.ts';
import type { Database, Queries } from '../../src/manager/database/database.ts';
import { TokenStore } from '../../src/manager/database/token-store.ts';
import { makeSchedule } from '../../src/manager/parts.ts';
import { listRoutes } from '../support/manager/list-routes.ts';
import { Client } from '../support/manager/manager-client.ts';
import { timedBy } from '../support/manager/manual-time.ts';
import { opened } from '../support/manager/outbox.ts';
import { partsOn } from '../support/manager/scripted-parts.ts';
import { ScriptedRuntime } from '../support/manager/scripted-runtime.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { describeOnStores } from '../support/stores.ts';

const TEAM = 'team_1';
const ROWS = 8_000;
/** Rows that a statement may look at where an index does not say all: a page, and what is due at once. */
const LOOKED_AT_MAX = 1_000;
const BIG = [
  'sandboxes',
  'leases',
  'outbox',
  'events',
  'event_positions',
  'usage_windows',
  'idempotency_keys',
];

/** What runs, as it is given to the database. */
class Recorder implements KyselyPlugin {
  readonly statements = new Map<string, CompiledQuery>();
  readonly #db: Queries;
  context = '';

  constructor(db: Queries) {
    this.#db = db;
  }

  transformQuery({ node, queryId }: Parameters<KyselyPlugin['transformQuery']>[0]) {
    const query = this.#db.getExecutor().compileQuery(node, queryId);
    if (/^\s*(select|update|delete|with)/i.test(query.sql)) {
      this.statements.set(`${this.context}: ${query.sql} ${JSON.stringify(query.parameters)}`, query);
    }
    return node;
  }

  async transformResult({ result }: Parameters<KyselyPlugin['transformResult']>[0]) {
    return result;
  }
}

/** Many rows of every kind, half of them the team's; half of the sandboxes are deleted. */
async function fill({ db, dialect }: Database): Promise<void> {
  const numbers = sql`with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${sql.lit(ROWS)})`;
  const id = sql`'sbx_' || substr('0000000' || i, -8)`;
  const team = sql`case when i % 4 < 2 then ${TEAM} else 'team_2' end`;
  const live = sql`case when i % 2 = 0 then 'running' else 'terminating' end`;
  const gone = sql`case when i % 2 = 0 then null else 1 end`;
  const times = sql`10000000000000, 10000000000000, 10000000000000`;
  const inserts = [
    sql`sandboxes (sandbox_id, team_id, template_id, status, operation_fence, auto_resume, runtime_generation, memory_mib,
        cpu_millis, resources, ttl_s, hard_ttl_s, expires_at_ms, hard_expires_at_ms, idle_expires_at_ms, created_at_ms,
        updated_at_ms, deleted_at_ms, node)
      ${numbers} select ${id}, ${team}, 'default', ${live}, 0, 0, 1, 64, 100, '{"memory":"64Mi","cpu":0.1}', 1, 1, ${times}, i,
        i, ${gone}, 'local' from numbers`,
    sql`sandbox_metadata (sandbox_id, team_id, key, text) ${numbers} select ${id}, ${team}, 'owner', 'me' from numbers`,
    sql`leases (sandbox_id, team_id, memory_mib, cpu_millis, started_ms, counted_until_ms)
      ${numbers} select ${id}, ${team}, 64, 100, 10000000000000, 10000000000000 from numbers`,
    sql`event_positions (sandbox_id, sequence) ${numbers} select ${id}, 0 from numbers`,
    sql`idempotency_keys (team_id, key, body_hash, sandbox_id, status_code, answer, created_at_ms)
      ${numbers} select ${team}, 'key' || i, '', ${id}, 201, '{}', 10000000000000 from numbers`,
    sql`outbox (event_id, sandbox_id, team_id, event_type, endpoint, url, headers, body, state, probe_ms, deadline_ms, attempts,
        failures, created_at_ms, finished_at_ms, retry)
      ${numbers} select 'evt_' || i, ${id}, ${team}, 'agent.event', 'endpoint', 'http://localhost/', '{}', '{}', 'delivered', 0,
        0, 1, 0, i, 10000000000000, 'transient' from numbers`,
    sql`events (event_id, team_id, sandbox_id, event_type, body, recorded_at_ms)
      ${numbers} select 'evt_' || i, ${team}, ${id}, 'sandbox.ready', '{}', 10000000000000 from numbers`,
    sql`usage_windows (window_id, team_id, region_id, cluster_id, window_type, subject_type, subject_id, sandbox_id,
        window_start_ms, window_end_ms, value, unit, recorded_at_ms)
      ${numbers} select 'win_' || i, ${team}, '', '', 'sandbox.runtime_mib_milliseconds', 'sandbox', ${id}, ${id}, 0, 1, 1, '', 1
        from numbers`,
  ];
  for (const insert of inserts) {
    const text = insert.compile(db);
    // PostgreSQL has no negative place in a text.
    const statement = text.sql.replace(
      /substr\('0000000' \|\| i, -8\)/g,
      dialect === 'sqlite' ? '$&' : "lpad(i::text, 8, '0')",
    );
    await db.executeQuery(CompiledQuery.raw(`insert into ${statement}`, [...text.parameters]));
  }
  await sql.raw(dialect === 'sqlite' ? 'analyze' : 'vacuum analyze').execute(db);
}

/** What a statement reads that no range of an index names; null where all is well. */
async function excess({ db, dialect }: Database, query: CompiledQuery): Promise<string | null> {
  if (dialect === 'sqlite') {
    const raw = CompiledQuery.raw(`explain query plan ${query.sql}`, [...query.parameters]);
    const { rows } = await db.executeQuery<{ detail: string }>(raw);
    const scans = rows.filter(({ detail }) => {
      const table = /^SCAN (\S+)/.exec(detail)?.[1] ?? '';
      return BIG.includes(table) && !detail.includes('COVERING INDEX');
    });
    return scans.length === 0 ? null : scans.map(({ detail }) => detail).join('; ');
  }
  const raw = CompiledQuery.raw(`explain (analyze, timing off, format json) ${query.sql}`, [
    ...query.parameters,
  ]);
  let plan: PlanNode | undefined;
  await db
    .transaction()
    .execute(async (tx) => {
      // Of a few thousand rows it would rather read all than some hundred by an index: where there is one, it takes that.
      await sql`set local enable_seqscan = off`.execute(tx);
      const { rows } = await tx.executeQuery<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(raw);
      plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
      throw new Error('nothing is changed');
    })
    .catch(() => {});
  if (plan === undefined) return 'it has no plan';
  const found = nodesOf(plan).filter((node) => readsInVain(node));
  return found.length === 0
    ? null
    : found.map((node) => `${node['Node Type']} of ${node['Relation Name']}`).join('; ');
}

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function readsInVain(node: PlanNode): boolean {
  if (!BIG.includes(node['Relation Name'] ?? '')) return false;
  const removed = (node['Rows Removed by Filter'] ?? 0) * node['Actual Loops'];
  const read = node['Actual Rows'] * node['Actual Loops'] + removed;
  return node['Node Type'] === 'Index Only Scan' ? false : read > LOOKED_AT_MAX;
}

describeOnStores('the statements of a manager with many sandboxes', (fresh) => {
  it('name what they read by ranges of indexes, in every list and every job', async () => {
    const url = await fresh();
    const clock = new ManualClock();
    const database = await opened(url);
    await fill(database);
    const recorder = new Recorder(database.db);
    const recorded = timedBy({ ...database, db: database.db.withPlugin(recorder) }, clock);
    const parts = await partsOn(recorded, { clock, runtime: new ScriptedRuntime() }, { database: url });
    const tokens = new TokenStore(database.db, parts.services.clock);
    const schedule = makeSchedule(parts);
    const server = await makeApi(parts, tokens, schedule, false);
    await server.listen('127.0.0.1', 0);
    onTestFinished(() => server.close());
    const token = await tokens.create(
      TEAM,
      ['sandboxes:read', 'webhooks:read', 'usage:read', 'quota:read', 'admin'],
      true,
    );
    const client = new Client(() => server.url, token);
    const lists = await listRoutes(server.url, 'pairs');
    recorder.statements.clear();
    expect(lists.length).toBeGreaterThan(50);
    for (const path of lists) {
      recorder.context = `GET ${path}`;
      const { status } = await client.get(path);
      expect([path, status]).toEqual([path, 200]);
    }
    recorder.context = 'GET /metrics';
    await fetch(`${server.url}/metrics`);
    recorder.context = 'a job';
    await schedule.start();
    for (let second = 0; second < 70; second++) await clock.advance(1_000);
    await schedule.stop();
    recorder.context = 'the outbox';
    await parts.delivery.start();
    await parts.delivery.stop();
    const found: string[] = [];
    for (const [what, query] of recorder.statements) {
      const reason = await excess(database, query);
      if (reason !== null) found.push(`${reason}: ${what}`);
    }
    expect(found).toEqual([]);
  });
});
