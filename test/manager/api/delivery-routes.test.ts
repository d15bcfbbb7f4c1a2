import { expect, it } from 'vitest';
import { sign } from '../../../src/webhook/signature.ts';
import { eventually } from '../../support/eventually.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { type RunningManager, startManager } from '../../support/manager/running-manager.ts';
import { TrackingConsumer } from '../../support/manager/tracking-consumer.ts';
import { describeOnStores } from '../../support/stores.ts';

const PATH = '/api/v1/webhooks/deliveries';
const SECRET = 'a secret made for this test';
const WITHIN = { timeout: 60_000, interval: 20 };

interface Scene {
  running: RunningManager;
  consumer: TrackingConsumer;
  client: Client;
  /** Claims and deletes so many sandboxes whose consumer is the present one. */
  deleted(count: number): Promise<string[]>;
}

async function scene(database: string): Promise<Scene> {
  const consumer = await TrackingConsumer.start();
  const running = await startManager(database);
  const client = await running.client('team_1', 'sandboxes:write', 'webhooks:read');
  return {
    running,
    consumer,
    client,
    async deleted(count) {
      const sandbox_ids: string[] = [];
      for (let i = 0; i < count; i++) {
        const sandbox_id = await client.claim({ webhook: { url: `${consumer.url}/hook`, secret: SECRET } });
        sandbox_ids.push(sandbox_id);
        expect((await client.call('DELETE', `/api/v1/sandboxes/${sandbox_id}`)).status).toBe(202);
      }
      return sandbox_ids;
    },
  };
}

describeOnStores('the routes of deliveries', (fresh) => {
  it("narrow a team's records by sandbox and endpoint, and name what is neither", async () => {
    const { consumer, client, deleted } = await scene(await fresh());
    const [first] = await deleted(2);
    const count = async (query: string) => (await client.get(`${PATH}?${query}`)).data.deliveries.length;
    expect(await count('')).toBe(2);
    expect(await count(`sandbox_id=${first}`)).toBe(1);
    expect(await count(`endpoint=${encodeURIComponent(`${consumer.url}/hook?any=query`)}`)).toBe(2);
    expect(await count(`endpoint=${encodeURIComponent(`${consumer.url}/other`)}`)).toBe(0);
    const refused = await client.get(`${PATH}?endpoint=nowhere`);
    expect([refused.status, refused.error?.message]).toEqual([400, 'endpoint: must be a URL']);
  });

  it('show a deletion with its exact request and every attempt', async () => {
    const { consumer, client, deleted } = await scene(await fresh());
    consumer.answer = ({ attempt }, respond) => respond(attempt === 1 ? 503 : 204);
    const [sandbox_id] = await deleted(1);
    await eventually(() => expect(consumer.received).toHaveLength(2), WITHIN);
    const { event_id, body } = consumer.received[0] ?? { event_id: '', body: '' };
    const answer = await eventually(async () => {
      const one = await client.get(`${PATH}/${event_id}`);
      expect(one.data.state).toBe('delivered');
      return one;
    }, WITHIN);
    expect(answer.status).toBe(200);
    expect(answer.data).toEqual({
      event_id,
      event_type: 'sandbox.deleted',
      sandbox_id,
      sequence: null,
      state: 'delivered',
      created_at: JSON.parse(body).timestamp,
      finished_at: expect.any(String),
      next_attempt_at: null,
      attempt_count: 2,
      last_status: 204,
      last_error: null,
      last_error_detail: null,
      body,
      headers: expect.objectContaining({ 'X-Service-Signature': sign(SECRET, body), 'ce-id': event_id }),
      attempts: [
        {
          attempt: 1,
          started_at: expect.any(String),
          duration_ms: expect.any(Number),
          status: 503,
          error: null,
          next_attempt_at: expect.any(String),
          error_detail: '503 Service Unavailable',
          response_body: null,
        },
        expect.objectContaining({ attempt: 2, status: 204, next_attempt_at: null }),
      ],
    });
  });

  it('list in pages and by state, and replay one or all', async () => {
    const { consumer, client, deleted } = await scene(await fresh());
    consumer.answer = (_, respond) => respond(400);
    const sandbox_ids = await deleted(3);
    const failed = `${PATH}?state=failed&event_type=sandbox.deleted`;
    await eventually(async () => {
      expect((await client.get(failed)).data.deliveries).toHaveLength(3);
    }, WITHIN);
    const first = (await client.get(`${failed}&limit=2`)).data;
    const rest = (await client.get(`${failed}&limit=2&cursor=${first.next_cursor}`)).data;
    const listed = [...first.deliveries, ...rest.deliveries].map(({ sandbox_id }) => sandbox_id);
    expect(listed).toEqual(sandbox_ids.toReversed());
    expect(rest.next_cursor).toBeNull();
    expect(Object.keys(first.deliveries[0]).sort()).toEqual([
      'attempt_count',
      'created_at',
      'event_id',
      'event_type',
      'finished_at',
      'last_error',
      'last_error_detail',
      'last_status',
      'next_attempt_at',
      'sandbox_id',
      'sequence',
      'state',
    ]);
    consumer.answer = (_, respond) => respond(204);
    const { event_id } = first.deliveries[0];
    const replayed = await client.post(`${PATH}/${event_id}/replay`);
    expect([replayed.status, replayed.data.event_id]).toEqual([200, event_id]);
    await eventually(
      () => expect(consumer.of(event_id).map(({ attempt }) => attempt)).toEqual([1, 2]),
      WITHIN,
    );
    expect(consumer.changed).toEqual([]);
    await eventually(async () => {
      expect((await client.get(`${PATH}?state=delivered`)).data.deliveries).toHaveLength(1);
    }, WITHIN);
    expect((await client.post(`${PATH}/replay?state=failed`)).data).toEqual({ replayed: 2 });
    await eventually(() => expect(consumer.delivered.size).toBe(3), WITHIN);
  });

  it('are discarded one by one or by state; what is pending is 409, and that of another team 404', async () => {
    const { running, consumer, client, deleted } = await scene(await fresh());
    consumer.answer = (_, respond) => respond(404);
    await deleted(3);
    const list = async (state: string) => (await client.get(`${PATH}?state=${state}`)).data.deliveries;
    await eventually(async () => expect(await list('failed')).toHaveLength(3), WITHIN);
    consumer.answer = (_, respond) => respond(503);
    const [{ event_id }, pending] = await list('failed');
    await client.post(`${PATH}/${pending.event_id}/replay`);
    const stranger = await running.client('team_2', 'sandboxes:write');
    expect((await stranger.call('DELETE', `${PATH}/${event_id}`)).status).toBe(404);
    expect((await stranger.call('DELETE', `${PATH}?state=failed`)).data).toEqual({ discarded: 0 });
    const reader = await running.client('team_1', 'webhooks:read');
    expect((await reader.call('DELETE', `${PATH}/${event_id}`)).status).toBe(403);
    expect((await client.call('DELETE', `${PATH}/${event_id}`)).data).toEqual({ discarded: 1 });
    expect((await client.call('DELETE', `${PATH}/${event_id}`)).status).toBe(404);
    const refused = await client.call('DELETE', `${PATH}/${pending.event_id}`);
    expect([refused.status, refused.error?.code]).toEqual([409, 'conflict']);
    expect((await client.call('DELETE', `${PATH}?state=failed`)).data).toEqual({ discarded: 1 });
    expect([await list('failed'), (await list('pending')).length]).toEqual([[], 1]);
  });

  it("keep teams apart and ask for the token's scopes", async () => {
    const { running, consumer, client, deleted } = await scene(await fresh());
    await deleted(1);
    await eventually(() => expect(consumer.received).toHaveLength(1), WITHIN);
    const path = `${PATH}/${consumer.received[0]?.event_id}`;
    const stranger = await running.client('team_2', 'sandboxes:write', 'webhooks:read');
    expect((await stranger.get(PATH)).data).toEqual({ deliveries: [], next_cursor: null });
    expect((await stranger.get(path)).status).toBe(404);
    expect((await stranger.post(`${path}/replay`)).status).toBe(404);
    expect((await stranger.post(`${PATH}/replay?state=delivered`)).data).toEqual({ replayed: 0 });
    const reader = await running.client('team_1', 'webhooks:read');
    expect((await reader.get(path)).status).toBe(200);
    expect((await reader.post(`${path}/replay`)).status).toBe(403);
    const writer = await running.client('team_1', 'sandboxes:write');
    expect((await writer.get(path)).status).toBe(403);
    const nobody = await fetch(`${running.manager.url}${path}`);
    expect(nobody.status).toBe(401);
    expect((await client.get(path)).status).toBe(200);
  });

  it.each([
    ['GET', '?state=lost', 'state'],
    ['GET', '?limit=0', 'limit'],
    ['GET', '?limit=-1', 'limit'],
    ['GET', '?limit=x', 'limit'],
    ['GET', '?cursor=x', 'cursor'],
    ['GET', '?cursor=0', 'cursor'],
    ['GET', '?event_type=x', 'event_type'],
    ['GET', '?states=failed', 'states'],
    ['POST', '/replay', 'state'],
    ['DELETE', '', 'state'],
    ['DELETE', '?state=delivered', 'state'],
    ['POST', '/replay?state=pending', 'state'],
  ])('refuse %s %s by name', async (method, query, field) => {
    const { client } = await scene(await fresh());
    const { status, error } = await client.call(method, PATH + query);
    expect([status, error?.code, error?.details?.field]).toEqual([400, 'invalid_request', field]);
  });

  it('count what was done in the metrics', async () => {
    const { running, consumer, client, deleted } = await scene(await fresh());
    await deleted(2);
    await eventually(async () => {
      expect((await client.get(`${PATH}?state=delivered`)).data.deliveries).toHaveLength(2);
    }, WITHIN);
    const text = await (await fetch(`${running.manager.url}/metrics`)).text();
    for (const line of [
      'sandbox_manager_enqueued_total{event_type="sandbox.deleted"} 2',
      'sandbox_manager_delivery_attempts_total{outcome="delivered",class="2xx"} 2',
      'sandbox_manager_end_to_end_seconds_count 2',
      'sandbox_manager_outbox_records{state="pending"} 0',
      'sandbox_manager_outbox_oldest_pending_seconds 0',
      'sandbox_manager_endpoints_owned 1',
      'sandbox_manager_outcomes_refused_total 0',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
    expect(text).not.toContain(consumer.url);
  });

  it('know no record of another spelling, and cap a page', async () => {
    const { client } = await scene(await fresh());
    for (const id of ['evt_x', '%00', '..%2f', `evt_${'0'.repeat(36)}`]) {
      expect((await client.get(`${PATH}/${id}`)).status).toBe(404);
    }
    expect((await client.get(`${PATH}?limit=1000000000`)).status).toBe(200);
  });
});
