import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { OutboxStore } from '../../src/manager/outbox/outbox-store.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { noticeOf, opened, SEAL, SECRET } from '../support/manager/outbox.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { describeOnStores } from '../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';
const DELIVERIES = '/api/v1/webhooks/deliveries';
const LATER = { timeout: 60_000, interval: 100 };

describeOnStores('trouble with one row', (fresh) => {
  it('of a receiver that answers U+0000 leaves deliveries of other teams alone', async () => {
    const { client } = await startManager(await fresh());
    const poisoning = await startConsumer();
    poisoning.answer = (_, response) => response.writeHead(500).end(Buffer.from('OK\0'));
    const healthy = await startConsumer();
    const teams = [
      { team: await client('team_a', 'sandboxes:write', 'webhooks:read'), url: poisoning.url },
      { team: await client('team_b', 'sandboxes:write', 'webhooks:read'), url: healthy.url },
    ];
    for (const { team, url } of teams) {
      const id = await team.claim({ webhook: { url } });
      expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(202);
    }
    const [a, b] = teams.map(({ team }) => team);
    await eventually(async () => {
      expect((await b?.get(DELIVERIES))?.data.deliveries).toMatchObject([{ state: 'delivered' }]);
    }, LATER);
    await eventually(async () => {
      const { data } = (await a?.get(DELIVERIES)) ?? {};
      const detail = await a?.get(`${DELIVERIES}/${data.deliveries[0].event_id}`);
      expect(detail?.data.attempts[0]).toMatchObject({ status: 500, response_body: 'OK\uFFFD' });
    }, LATER);
    expect(healthy.deliveries).toHaveLength(1);
  });

  it('that nothing can be sent of ends no manager, and leaves others to be delivered', async () => {
    const url = await fresh();
    const consumer = await startConsumer();
    const database = await opened(url);
    const clock = await DatabaseClock.open(database, systemClock);
    const outbox = new OutboxStore(database, clock, SEAL);
    const add = (sandbox_id: string, webhook_url: string) =>
      database.db
        .transaction()
        .execute((tx) =>
          outbox.insertDeleted(tx, noticeOf(Date.now(), { sandbox_id, webhook_url, webhook_secret: SECRET })),
        );
    for (const damage of [{ headers: '{' }, { signatures: '[' }, { url: 'no url' }]) {
      await add(Object.keys(damage).join(), `${consumer.url}/damaged`);
      await database.db
        .updateTable('outbox')
        .set(damage)
        .where('sandbox_id', '=', Object.keys(damage).join())
        .execute();
    }
    await add('sound', consumer.url);
    const { client } = await startManager(url);
    await consumer.arrival('sandbox.deleted');
    const team = await client('team_1', 'webhooks:read');
    await eventually(async () => {
      const { data } = await team.get(DELIVERIES);
      for (const { event_id, sandbox_id } of data.deliveries) {
        const { attempts } = (await team.get(`${DELIVERIES}/${event_id}`)).data ?? {
          attempts: [{ error: 'protocol' }],
        };
        expect(attempts[0]?.error).toBe(sandbox_id === 'sound' ? null : 'protocol');
      }
    }, LATER);
    expect(consumer.deliveries).toHaveLength(1);
  });
});
