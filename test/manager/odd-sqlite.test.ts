import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '../../src/manager/database/database.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const SANDBOXES = '/api/v1/sandboxes';
const LATER = { timeout: 30_000, interval: 100 };
const DATABASE_TS = resolve(import.meta.dirname, '../../src/manager/database/database.ts');

async function scene() {
  const path = join(scratchFolder(), 'manager.db');
  const running = await startManager(`sqlite:${path}`);
  const team = await running.client('team_1', 'sandboxes:write');
  return { ...running, path, team };
}

/** Another process that holds the right to write until it is killed. */
async function locker(path: string) {
  const program = `import Sqlite from 'better-sqlite3';
    const database = new Sqlite(${JSON.stringify(path)}, { timeout: 10_000 });
    database.exec('begin immediate');
    process.stdout.write('locked');
    setInterval(() => database.inTransaction, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

/** Whether a file holds sandboxes, and is sound. */
async function expectKept(path: string, ids: string[]): Promise<void> {
  const database = new Sqlite(path, { readonly: true });
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
  const kept = database.prepare('select sandbox_id from sandboxes where team_id = ?').pluck().all('team_1');
  expect(kept.toSorted()).toEqual(ids.toSorted());
  database.close();
}

it('a file that another process keeps for itself is 503, and everything else goes on meanwhile', async () => {
  const { manager, team, path } = await scene();
  const id = await team.claim();
  const child = await locker(path);
  const claiming = Promise.all(Array.from({ length: 5 }, () => team.post(SANDBOXES, {})));
  let answered = 0;
  let is_over = false;
  const looking = (async () => {
    while (!is_over) {
      expect((await fetch(`${manager.url}/healthz`)).status).toBe(200);
      answered += 1;
    }
  })();
  for (const { status, error } of await claiming) expect([status, error?.code]).toEqual([503, 'unavailable']);
  is_over = true;
  await looking;
  // A process that stands still answers once or twice.
  expect(answered).toBeGreaterThan(20);
  expect((await team.get(`${SANDBOXES}/${id}`)).status).toBe(200);
  child.kill('SIGKILL');
  await vi.waitFor(async () => expect((await team.post(SANDBOXES, {})).status).toBe(201), LATER);
});

it('a file that was removed is written anew with all it held', async () => {
  const { team, path, client } = await scene();
  const before = [await team.claim(), await team.claim()];
  const [removed] = before as [string];
  for (const names of [[path], [path, `${path}-wal`, `${path}-shm`]]) {
    for (const name of names) rmSync(name);
    before.push(await team.claim());
    expect(statSync(path).mode & 0o777).toBe(0o600);
  }
  expect((await team.call('DELETE', `${SANDBOXES}/${removed}`)).status).toBe(200);
  // Another process finds it, too.
  const other = await client('team_2', 'sandboxes:write');
  await other.claim();
  await expectKept(path, before);
});

it('a file that another has taken the place of is not written to', async () => {
  const { team, path } = await scene();
  const id = await team.claim();
  copyFileSync(path, `${path}-other`);
  renameSync(path, `${path}-aside`);
  renameSync(`${path}-other`, path);
  for (const answer of [
    await team.post(SANDBOXES, {}),
    await team.call('DELETE', `${SANDBOXES}/${id}`),
    await team.get('/readyz'),
  ]) {
    expect([answer.status, answer.error?.code]).toEqual([503, 'unavailable']);
  }
  renameSync(`${path}-aside`, path);
  expect((await team.get(`${SANDBOXES}/${id}`)).status).toBe(200);
  expect((await team.post(SANDBOXES, {})).status).toBe(201);
});

it('damage is 503, never 500', async () => {
  const { team, path } = await scene();
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

it('its tables are whole, wherever a start is killed', async () => {
  const folder = scratchFolder();
  const STATEMENTS_MAX = 400;
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
