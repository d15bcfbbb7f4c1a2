import { execFile, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/manager/database/database.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { type RunningManager, startManager } from '../support/manager/running-manager.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';
import { scratchFolder } from '../support/scratch.ts';

const SECRET = 'a key made for this test';
const DELETED = 5;
const SANDBOXES = '/api/v1/sandboxes';

/** Deletes sandboxes whose consumer answers nothing, backs up while others are claimed, and starts from the backup. */
async function keepsAcknowledged(database: string, backUp: (url: string) => Promise<string>): Promise<void> {
  const folder = scratchFolder();
  const consumer = await startConsumer();
  consumer.answer = () => {};
  const config = { webhook: { url: consumer.url, secret: SECRET } };
  const before = await startManager(database, { folder });
  const team = await before.client('team_1', 'sandboxes:write');
  const kept = await team.claim(config);
  for (let n = 0; n < DELETED; n++) {
    const { status } = await team.call('DELETE', `${SANDBOXES}/${await team.claim(config)}`);
    expect(status).toBe(202);
  }
  const first = await consumer.arrival('sandbox.deleted');
  const backup = await backUpAtWork(before, () => backUp(database));
  await before.stop();

  // As if the time had passed for which the endpoint was its replica's.
  const restored = await openDatabase(backup);
  await restored.db.updateTable('outbox_replicas').set({ lease_until_ms: 0 }).execute();
  await restored.close();
  consumer.deliveries.length = 0;
  consumer.answer = (_, response) => response.writeHead(204).end();
  const after = await startManager(backup, { folder });
  await eventually(() => expect(consumer.deliveries.length).toBeGreaterThanOrEqual(DELETED), {
    timeout: 60_000,
  });
  const ids = new Set(consumer.deliveries.map(({ event }) => event.event_id));
  expect(ids.size).toBe(DELETED);
  expect(consumer.find(first.event.event_id)?.body).toBe(first.body);
  expect(consumer.unsigned(SECRET)).toEqual([]);
  const again = await after.client('team_1', 'sandboxes:write');
  expect((await again.get(`${SANDBOXES}/${kept}`)).data).toMatchObject({ status: 'running' });
}

/** Makes a backup while a manager claims. */
async function backUpAtWork(manager: RunningManager, backUp: () => Promise<string>): Promise<string> {
  const other = await manager.client('team_2', 'sandboxes:write');
  const claims = Array.from({ length: 20 }, () => other.claim());
  const backup = await backUp();
  await Promise.all(claims);
  return backup;
}

describe('a backup that is made while the manager works, and restored', () => {
  it.skipIf(spawnSync('sqlite3', ['--version']).status !== 0)(
    'has everything acknowledged before it: .backup of sqlite3',
    async () => {
      const path = join(scratchFolder(), 'manager.db');
      await keepsAcknowledged(`sqlite:${path}`, async () => {
        const copy = join(scratchFolder(), 'restored.db');
        await promisify(execFile)('sqlite3', [path, '.timeout 5000', `.backup '${copy}'`]);
        expect(statSync(copy).size).toBeGreaterThan(0);
        return `sqlite:${copy}`;
      });
    },
    60_000,
  );

  it.skipIf(postgresPrograms() === null)(
    'has everything acknowledged before it: pg_dump of PostgreSQL',
    async () => {
      const server = await startPostgres();
      onTestFinished(() => server.stop());
      await keepsAcknowledged(await server.database(), (url) => server.restored(url));
    },
    60_000,
  );
});
