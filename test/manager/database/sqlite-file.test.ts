import { copyFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SANDBOXES = '/api/v1/sandboxes';

async function scene() {
  const path = join(scratchFolder(), 'manager.db');
  const running = await startManager(`sqlite:${path}`);
  const team = await running.client('team_1', 'sandboxes:write');
  return { ...running, path, team };
}

/** Whether a file holds sandboxes, and is sound. */
async function expectKept(path: string, ids: string[]): Promise<void> {
  const database = new Sqlite(path, { readonly: true });
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
  const kept = database.prepare('select sandbox_id from sandboxes where team_id = ?').pluck().all('team_1');
  expect(kept.toSorted()).toEqual(ids.toSorted());
  database.close();
}

it('a file that was removed is written anew with all it held', async () => {
  const { team, path, client } = await scene();
  const before = [await team.claim(), await team.claim()];
  const [removed] = before as [string];
  for (const names of [[path], [path, `${path}-wal`, `${path}-shm`]]) {
    for (const name of names) rmSync(name);
    before.push(await team.claim());
    expect(statSync(path).mode & 0o777).toBe(0o600);
  }
  expect((await team.call('DELETE', `${SANDBOXES}/${removed}`)).status).toBe(202);
  // Another process finds it, too.
  const other = await client('team_2', 'sandboxes:write');
  await other.claim();
  await expectKept(path, before);
});

it('a file that was replaced by another is not written to', async () => {
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
