import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SANDBOXES = '/api/v1/sandboxes';
const LATER = { timeout: 60_000, interval: 100 };

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

it('a file that another process has locked is 503, and everything else goes on meanwhile', async () => {
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
  await eventually(async () => expect((await team.post(SANDBOXES, {})).status).toBe(201), LATER);
});
