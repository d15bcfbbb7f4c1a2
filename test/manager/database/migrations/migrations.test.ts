import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { Kysely, Migrator, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase, type Queries } from '../../../../src/manager/database/database.ts';
import { migrationsFor } from '../../../../src/manager/database/migrations/migrations.ts';
import { openSqlite } from '../../../../src/manager/database/sqlite-file.ts';
import type { Tables } from '../../../../src/manager/database/tables.ts';
import { CuttingProxy, type Moment } from '../../../support/cutting-proxy.ts';
import { opened } from '../../../support/manager/outbox.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../../../support/postgres.ts';
import { scratchFolder } from '../../../support/scratch.ts';
import { describeOnStores } from '../../../support/stores.ts';

const DATABASE_TS = resolve(import.meta.dirname, '../../../../src/manager/database/database.ts');
const STATEMENTS_MAX = 400;

async function started(settings?: Record<string, string>): Promise<{ server: PostgresServer; url: string }> {
  const server = await startPostgres(settings);
  onTestFinished(() => server.stop());
  return { server, url: await server.database() };
}

/** Tables with their columns, and indexes, in the words of the database. */
async function schemaOf(db: Queries, is_sqlite: boolean): Promise<unknown[]> {
  const query = is_sqlite
    ? sql`select name, sql from sqlite_schema order by name`
    : sql`select table_name as name, column_name || data_type || is_nullable || coalesce(column_default, '') as sql
        from information_schema.columns where table_schema = 'public'
        union all select indexname, indexdef from pg_indexes where schemaname = 'public'
        union all select proname, prosrc from pg_proc where pronamespace = 'public'::regnamespace
        order by name, sql`;
  return (await query.execute(db)).rows;
}

/** A database as the build left it whose last migration is `name`. */
async function migratedTo(url: string, name: string): Promise<Kysely<Tables>> {
  const is_sqlite = url.startsWith('sqlite:');
  const dialect = is_sqlite
    ? openSqlite(url.slice('sqlite:'.length))
    : new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) });
  const db = new Kysely<Tables>({ dialect });
  const provider = { getMigrations: async () => migrationsFor(is_sqlite ? 'sqlite' : 'postgres') };
  const { error } = await new Migrator({ db, provider }).migrateTo(name);
  expect(error).toBeUndefined();
  return db;
}

describeOnStores('a database of every earlier migration', (fresh) => {
  it('has the tables of a new one once it is opened, and keeps what is in it', async () => {
    const new_url = await fresh();
    const is_sqlite = new_url.startsWith('sqlite:');
    const expected = await schemaOf((await opened(new_url)).db, is_sqlite);
    expect(expected.length).toBeGreaterThan(30);
    for (const name of Object.keys(migrationsFor(is_sqlite ? 'sqlite' : 'postgres'))) {
      const url = await fresh();
      const before = await migratedTo(url, name);
      await sql`insert into teams (team_id) values ('team_1')`.execute(before);
      await before.destroy();
      const { db } = await opened(url);
      expect([name, await schemaOf(db, is_sqlite)]).toEqual([name, expected]);
      expect(await db.selectFrom('teams').selectAll().execute()).toEqual([{ team_id: 'team_1' }]);
    }
  });
});

it('SQLite has every table, at whichever statement a start is killed', async () => {
  const folder = scratchFolder();
  for (let n = 1; n <= STATEMENTS_MAX; n += 9) {
    const path = join(folder, `${n}.db`);
    const program = `import Sqlite from 'better-sqlite3';
      const { prepare } = Sqlite.prototype;
      let left = ${n};
      Sqlite.prototype.prepare = function (sql) {
        if (--left === 0) process.kill(process.pid, 'SIGKILL');
        return prepare.call(this, sql);
      };
      const { openDatabase } = await import(${JSON.stringify(DATABASE_TS)});
      await (await openDatabase(${JSON.stringify(`sqlite:${path}`)})).close();
      process.stdout.write('done');`;
    let said = '';
    try {
      said = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
    } catch (error) {
      expect((error as { signal?: string }).signal).toBe('SIGKILL');
    }
    const { db, close } = await openDatabase(`sqlite:${path}`);
    expect(await db.selectFrom('usage_windows').selectAll().execute()).toEqual([]);
    expect(await db.selectFrom('outbox').selectAll().execute()).toEqual([]);
    await close();
    if (said === 'done') return;
  }
  expect.unreachable();
});

describe.skipIf(postgresPrograms() === null)('PostgreSQL', () => {
  it('has every table, at whichever statement the connection of a start is cut', async () => {
    const { server, url: first_url } = await started();
    for (const moment of ['before', 'after'] satisfies Moment[]) {
      let cuts = 0;
      for (let n = 1; n <= STATEMENTS_MAX; n += moment === 'before' ? 3 : 7) {
        const url = n === 1 ? first_url : await server.database();
        const proxy = await CuttingProxy.start(url);
        proxy.cutAt(n, moment);
        const opening = openDatabase(proxy.urlOf(url));
        await opening.then((database) => database.close()).catch(() => {});
        const is_cut = proxy.disarm();
        proxy.stop();
        const { db, close } = await openDatabase(url);
        expect(await db.selectFrom('usage_windows').selectAll().execute()).toEqual([]);
        await sql`select usage_horizon(), locked_active_sandboxes('team_1')`.execute(db);
        await close();
        if (!is_cut) break;
        cuts += 1;
      }
      expect(cuts).toBeGreaterThan(5);
    }
  });
});
