import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { reasonOf, unavailable } from '../../../src/manager/database/database-errors.ts';
import { eventually } from '../../support/eventually.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../../support/postgres.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SANDBOXES = '/api/v1/sandboxes';
const LATER = { timeout: 60_000, interval: 100 };

async function started(settings?: Record<string, string>): Promise<{ server: PostgresServer; url: string }> {
  const server = await startPostgres(settings);
  onTestFinished(() => server.stop());
  return { server, url: await server.database() };
}

/** Runs a statement on a connection of its own. */
async function operate(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(statement);
  await client.end();
}

/** Connects until the server has no room for one more. */
async function takeAllConnections(url: string): Promise<pg.Client[]> {
  const taken: pg.Client[] = [];
  for (;;) {
    const next = new pg.Client({ connectionString: url });
    next.on('error', () => {});
    try {
      await next.connect();
      taken.push(next);
    } catch {
      return taken;
    }
  }
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** Claims and deletes beside each other; every answer is a success or an honest 503. Gives the ids that are left. */
async function press(team: Client, rounds: number): Promise<string[]> {
  const left: string[] = [];
  const answers = await Promise.all(
    Array.from({ length: rounds }, async (_, i) => {
      const claimed = await team.post(SANDBOXES, {});
      if (claimed.status !== 201) return claimed;
      const id = claimed.data.sandbox_id as string;
      left.push(id);
      if (i % 2 === 0) return claimed;
      const deleted = await team.call('DELETE', `${SANDBOXES}/${id}`);
      if (deleted.status === 202) left.splice(left.indexOf(id), 1);
      return deleted;
    }),
  );
  for (const { status, error } of answers) {
    if (status >= 300) expect([status, error?.code]).toEqual([503, 'unavailable']);
  }
  return left;
}

/** Nothing is half-done: what was given is there, and nothing else is. */
async function expectThere(team: Client, ids: string[]): Promise<void> {
  await eventually(async () => {
    const { status, data } = await team.get(`${SANDBOXES}?limit=200`);
    expect(status).toBe(200);
    expect(data.sandboxes.map(({ id }: { id: string }) => id).sort()).toEqual(ids.toSorted());
  }, LATER);
}

describe.skipIf(postgresPrograms() === null)('a manager on PostgreSQL', () => {
  it('answers writes with 503 while it is read-only, and takes them again afterwards', async () => {
    const { server, url } = await started();
    const { client, manager } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const id = await team.claim();
    await operate(url, `alter database ${nameOf(url)} set default_transaction_read_only = on`);
    await server.dropConnections(url);
    await eventually(async () => expect((await team.get(`${SANDBOXES}/${id}`)).status).toBe(200), LATER);
    const { status, error } = await team.post(SANDBOXES, {});
    expect([status, error?.code]).toEqual([503, 'unavailable']);
    expect(await (await fetch(`${manager.url}/readyz`)).json()).toMatchObject({
      error: { code: 'unavailable', message: 'The database takes no writes: it is read-only, or a standby.' },
    });
    await operate(
      url,
      `set transaction read write; alter database ${nameOf(url)} reset default_transaction_read_only`,
    );
    // Connections of before take no writes for as long as they live.
    await eventually(async () => expect((await team.post(SANDBOXES, {})).status).toBe(201), LATER);
    await eventually(async () => expect((await fetch(`${manager.url}/readyz`)).status).toBe(200), LATER);
  });

  it('answers requests with 503 while it has no connection left', async () => {
    const { url } = await started({ max_connections: '9' });
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const left = await press(team, 40);
    await expectThere(team, left);
  });

  it('keeps connections in use while it has none left', async () => {
    const { url } = await started({ max_connections: '14' });
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    await holder.query('begin; lock table sandboxes in exclusive mode');
    const claiming = team.post(SANDBOXES, {});
    await eventually(async () => {
      expect((await holder.query('select 1 from pg_locks where not granted')).rowCount).toBe(1);
    }, LATER);
    const others = await takeAllConnections(url);
    // Much longer than a server may be silent before it is taken to be lost.
    const until_ms = performance.now() + 3_000;
    while (performance.now() < until_ms) {
      expect([200, 503]).toContain((await team.get(SANDBOXES)).status);
    }
    await holder.query('commit');
    await Promise.all([holder, ...others].map((each) => each.end()));
    expect((await claiming).status).toBe(201);
  });

  it('answers requests with 503 if it aborts conflicting transactions, and no quota is exceeded', async () => {
    const { url } = await started();
    await operate(url, `alter database ${nameOf(url)} set default_transaction_isolation = 'serializable'`);
    const { client } = await startManager(url, {
      file: { default_team_quotas: [{ dimension: 'active_sandboxes', limit_value: 5 }] },
    });
    const team = await client('team_1', 'sandboxes:write');
    const answers = await Promise.all(Array.from({ length: 30 }, () => team.post(SANDBOXES, {})));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => ![201, 429, 503].includes(status))).toEqual([]);
    const ids = answers.filter(({ status }) => status === 201).map(({ data }) => data.sandbox_id);
    expect(ids.length).toBeLessThanOrEqual(5);
    await expectThere(team, ids);
  });

  it('answers requests with 503 if it cancels slow statements', async () => {
    const { server, url } = await started();
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    await operate(url, `alter database ${nameOf(url)} set statement_timeout = '2ms'`);
    await server.dropConnections(url);
    const statuses = await Promise.all(
      Array.from({ length: 40 }, async () => (await team.post(SANDBOXES, {})).status),
    );
    expect(statuses.filter((status) => ![201, 503].includes(status))).toEqual([]);
    await operate(url, `alter database ${nameOf(url)} reset statement_timeout`);
    await server.dropConnections(url);
    await eventually(async () => expect((await team.post(SANDBOXES, {})).status).toBe(201), LATER);
  });
});

it('damaged SQLite is 503, never 500', async () => {
  const path = join(scratchFolder(), 'manager.db');
  const { client } = await startManager(`sqlite:${path}`);
  const team = await client('team_1', 'sandboxes:write');
  await team.claim();
  const database = new Sqlite(path);
  database.pragma('wal_checkpoint(TRUNCATE)');
  database.unsafeMode();
  database.pragma('writable_schema = on');
  database.exec("update sqlite_master set rootpage = 99999 where name = 'sandboxes'");
  database.pragma('schema_version = 9999');
  database.close();
  for (const { status, error } of [
    await team.get(SANDBOXES),
    await team.post(SANDBOXES, {}),
    await team.get('/readyz'),
  ]) {
    expect([status, error?.code]).toEqual([503, 'unavailable']);
  }
});

it.each([
  ['timeout exceeded when trying to connect', 'no connection in time'],
  ['Connection terminated unexpectedly', 'the connection was closed'],
  ['Query read timeout', 'no answer in time'],
  ['the database system is starting up', 'the database system is starting up'],
])('the log says of "%s" what it means', (message, reason) => {
  expect(reasonOf(unavailable(new Error(message)))).toBe(reason);
  expect(reasonOf(new Error(message))).toBe(reason);
});

it('the log names the address of several that were tried, where the library says nothing', () => {
  const tried = ['::1', '127.0.0.1'].map((address) =>
    Object.assign(new Error(), { code: 'ECONNREFUSED', address, port: 5432 }),
  );
  expect(reasonOf(unavailable(new AggregateError(tried)))).toBe(
    'connection refused (ECONNREFUSED [::1]:5432)',
  );
});
