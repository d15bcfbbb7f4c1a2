import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../../src/manager/database/database.ts';
import { CuttingProxy, type Moment } from '../../../support/cutting-proxy.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../../../support/postgres.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const DATABASE_TS = resolve(import.meta.dirname, '../../../../src/manager/database/database.ts');
const STATEMENTS_MAX = 400;

async function started(settings?: Record<string, string>): Promise<{ server: PostgresServer; url: string }> {
  const server = await startPostgres(settings);
  onTestFinished(() => server.stop());
  return { server, url: await server.database() };
}

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
