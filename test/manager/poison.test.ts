import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { OutboxStore } from '../../src/manager/outbox/outbox-store.ts';
import { Deferrals } from '../../src/manager/sandboxes/deferrals.ts';
import { startConsumer } from '../support/consumer.ts';
import { noticeOf, opened, SEAL, SECRET } from '../support/manager/outbox.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { describeOnStores } from '../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';
const DELIVERIES = '/api/v1/webhooks/deliveries';
const LATER = { timeout: 20_000, interval: 100 };

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
      expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(200);
    }
    const [a, b] = teams.map(({ team }) => team);
    await vi.waitFor(async () => {
      expect((await b?.get(DELIVERIES))?.data.deliveries).toMatchObject([{ state: 'delivered' }]);
    }, LATER);
    await vi.waitFor(async () => {
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
    const outbox = new OutboxStore(database, new DatabaseClock(database, systemClock), SEAL);
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
    await vi.waitFor(async () => {
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

  it('of more memory than can be metered does not keep a sandbox from being paused and deleted', async () => {
    const url = await fresh();
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const config = { resources: { memory: '999999999Ti' } };
    const refused = await team.post(SANDBOXES, { config });
    expect([refused.status, refused.error?.details?.field]).toEqual([400, 'config.resources.memory']);
    const id = await team.claim();
    // As a claim of before was taken, an hour ago.
    const { db } = await opened(url);
    const memory_mib = 999_999_999 * 1024 * 1024;
    const at_ms = Date.now() - 3_600_000;
    await db.updateTable('sandboxes').set({ memory_mib }).execute();
    await db.updateTable('leases').set({ memory_mib, counted_until_ms: at_ms }).execute();
    expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(200);
  });

  it('that does not let itself be ended does not take the turn of what does', async () => {
    const url = await fresh();
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const ids = await Promise.all(Array.from({ length: 101 }, () => team.claim()));
    const last = ids.at(-1) as string;
    const { db } = await opened(url);
    // Their secrets do not open any more, so that no deletion of theirs commits.
    const webhook = { webhook_url: 'http://127.0.0.1:9/', webhook_secret_sealed: 'damaged' };
    await db.updateTable('sandboxes').set(webhook).where('sandbox_id', '!=', last).execute();
    await db.updateTable('sandboxes').set({ hard_expires_at_ms: 1 }).execute();
    await vi.waitFor(async () => expect((await team.get(`${SANDBOXES}/${last}`)).status).toBe(404), LATER);
  });
});

it('defers what fails ever longer, and no longer than a minute', async () => {
  const clock = new ManualClock();
  const deferrals = new Deferrals(clock);
  const delays: number[] = [];
  for (let i = 0; i < 9; i++) {
    deferrals.defer('one');
    const began_ms = clock.monotonicMs();
    while (deferrals.current().length > 0) await clock.advance(500);
    delays.push(clock.monotonicMs() - began_ms);
  }
  expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
});
