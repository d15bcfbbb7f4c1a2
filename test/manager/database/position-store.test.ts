import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { Usage } from '../../../src/manager/usage/usage.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import { postgresPrograms, startPostgres } from '../../support/postgres.ts';
import { scratchFolder } from '../../support/scratch.ts';

const TEAM = 'team_1';
const PLACES = { region_id: 'eu', cluster_id: 'local' };

async function opened(url: string) {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  const clock = await DatabaseClock.open(database, systemClock);
  const parts = { runtime: new NoRuntime(), clock, ...PLACES };
  const usage = await Usage.open(database, parts, true);
  const store = new UsageStore(database);
  let windows = 0;
  return {
    database,
    close: () => database.close(),
    async write(prefix: string, count = 1) {
      for (let i = 0; i < count; i++) {
        const span = { start_ms: 0, end_ms: 1, team_id: TEAM, sandbox_id: 'sbx_1', value: 1 };
        const window = {
          ...span,
          window_id: `${prefix}${++windows}`,
          window_type: 'sandbox.egress_bytes' as const,
        };
        await store.write((tx) => store.record(tx, [window], { ...PLACES, recorded_at_ms: 0 }));
      }
    },
    async read(cursor?: string) {
      const page = await usage.page(TEAM, { cursor, limit: 1_000, window_type: undefined });
      return { ids: page.windows.map(({ window_id }) => window_id), cursor: page.next_cursor };
    },
  };
}

/** Uses up numbers of transactions. */
async function busy({ db }: Database, count: number): Promise<void> {
  await sql`do $$ begin for i in 1..${sql.lit(count)} loop perform pg_current_xact_id(); commit; end loop; end $$`.execute(
    db,
  );
}

describe.skipIf(postgresPrograms() === null)(
  'usage that was dumped and restored into another PostgreSQL',
  () => {
    it('shows everything it held, and later windows to cursors from before', async () => {
      const [old_server, new_server] = [await startPostgres(), await startPostgres()];
      onTestFinished(() => Promise.all([old_server.stop(), new_server.stop()]).then(() => {}));
      const url = await old_server.database();
      const before = await opened(url);
      await busy(before.database, 3_000);
      await before.write('a', 3);
      const half = await before.read();
      await before.write('b', 2);
      const copy = await new_server.restored(url);
      // Read after the dump was made: the copy has not heard of it.
      await before.write('lost');
      const late = await before.read(half.cursor);
      expect(late.ids).toEqual(['b4', 'b5', 'lost6']);

      const after = await opened(copy);
      expect((await after.read()).ids).toEqual(['a1', 'a2', 'a3', 'b4', 'b5']);
      await after.write('c', 2);
      expect((await after.read()).ids).toEqual(['a1', 'a2', 'a3', 'b4', 'b5', 'c1', 'c2']);
      expect((await after.read(half.cursor)).ids).toEqual(['b4', 'b5', 'c1', 'c2']);
      expect((await after.read(late.cursor)).ids).toEqual(['c1', 'c2']);
      // The next start finds the same cluster.
      await (await opened(copy)).write('d');
      expect((await after.read(late.cursor)).ids).toEqual(['c1', 'c2', 'd1']);
    });
  },
);

describe.skipIf(postgresPrograms() === null)('a transaction that stays open', () => {
  /** Leaves a transaction with an id open in a database. */
  async function leftOpen(url: string): Promise<() => Promise<void>> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('begin');
    await client.query('create table of_its_own ()');
    return async () => {
      await client.query('commit');
    };
  }

  it('holds up readers of its own database alone, for a manager without special rights too', async () => {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const [url, other] = [await server.database(), await server.database()];
    const owner = new pg.Client({ connectionString: url });
    await owner.connect();
    await owner.query("create role plain login password 'plain'");
    await owner.query('grant all on schema public to plain');
    await owner.end();
    const { write, read } = await opened(url.replace(/\/\/[^@]*@/, '//plain:plain@'));
    const [endOther, endLater] = [await leftOpen(other), await leftOpen(other.replace(/[^/]*$/, 'postgres'))];
    await write('a', 2);
    const first = await read();
    expect(first.ids).toEqual(['a1', 'a2']);
    const endOwn = await leftOpen(url);
    await write('b');
    expect((await read(first.cursor)).ids).toEqual([]);
    await endOther();
    expect((await read(first.cursor)).ids).toEqual([]);
    await endOwn();
    expect((await read(first.cursor)).ids).toEqual(['b3']);
    await endLater();
  });
});

it('a cursor ahead of a SQLite file that was restored from a backup is refused, never answered with an empty page', async () => {
  const path = join(scratchFolder(), 'manager.db');
  const before = await opened(`sqlite:${path}`);
  await before.write('a', 2);
  await sql`vacuum into ${`${path}-backup`}`.execute(before.database.db);
  await before.write('b');
  const { cursor } = await before.read();
  expect((await before.read(cursor)).ids).toEqual([]);
  await before.close();
  copyFileSync(`${path}-backup`, path);
  const after = await opened(`sqlite:${path}`);
  await expect(after.read(cursor)).rejects.toMatchObject({
    code: 'invalid_request',
    details: { field: 'cursor' },
  });
  expect((await after.read()).ids).toEqual(['a1', 'a2']);
});
