import { randomBytes } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { endpointKey, endpointOf } from '../../../src/manager/database/endpoint-key.ts';
import { OutboxStore } from '../../../src/manager/outbox/outbox-store.ts';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { undoFrom } from '../../support/manager/older-database.ts';
import { noticeOf, opened, SEAL } from '../../support/manager/outbox.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';

/** Undoes the steps since endpoints were URLs without a query. */
async function asBefore(db: Kysely<never>, endpoint: string): Promise<void> {
  await undoFrom(db, '005');
  await sql`update outbox set endpoint = ${endpoint}`.execute(db);
}

describeOnStores('endpoints of the outbox', (fresh) => {
  it('may have URLs of any length that a claim takes: their sandboxes can be deleted', async () => {
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write', 'webhooks:read');
    const url = `http://127.0.0.1:9/${randomBytes(1_850).toString('hex')}`;
    const id = await team.claim({ webhook: { url } });
    expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(200);
    const { data } = await team.get('/api/v1/webhooks/deliveries');
    expect(data.deliveries).toMatchObject([{ sandbox_id: id, state: 'pending' }]);
  });

  it('of a database of before go on being delivered to', async () => {
    const url = await fresh();
    const consumer = await startConsumer();
    const database = await opened(url);
    const outbox = new OutboxStore(database, new DatabaseClock(database, systemClock), SEAL);
    const notice = noticeOf(Date.now(), { webhook_url: `${consumer.url}?key=1` });
    await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
    const { origin, pathname } = new URL(consumer.url);
    await asBefore(database.db as unknown as Kysely<never>, origin + pathname);
    const { client } = await startManager(url);
    await consumer.arrival('sandbox.deleted');
    const team = await client('team_1', 'webhooks:read');
    await eventually(async () => {
      const { data } = await team.get('/api/v1/webhooks/deliveries');
      expect(data.deliveries).toMatchObject([{ state: 'delivered' }]);
    });
    expect(consumer.deliveries).toHaveLength(1);
    const rows = await database.db.selectFrom('outbox').select('endpoint').execute();
    expect(rows[0]?.endpoint).toMatch(/^[0-9a-f]{64}$/);
  });
});

it('names a webhook URL that is too long', async () => {
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const team = await client('team_1', 'sandboxes:write');
  for (const path of ['a'.repeat(4_096), 'é'.repeat(1_500)]) {
    const { status, error } = await team.post(SANDBOXES, {
      config: { webhook: { url: `http://u.example/${path}` } },
    });
    expect([status, error?.details?.field]).toEqual([400, 'config.webhook.url']);
  }
});

it('counts an endpoint by scheme, host, port and path', () => {
  expect(endpointOf('https://u.example:443/a/b?c=d#e')).toBe(endpointKey('https://u.example/a/b'));
  expect(endpointOf('http://u.example:8080')).toBe(endpointKey('http://u.example:8080/'));
});
