import { describe, expect, it } from 'vitest';
import { startDaemon, startDelivering } from '../../support/daemon/running-daemon.ts';
import { eventually } from '../../support/eventually.ts';

/** Loaded machines are slow. */
const WAIT = { timeout: 60_000 };

describe('the deliveries', () => {
  it('are listed newest first, in pages, and filtered by state and type', async () => {
    const { publish, call, consumer } = await startDelivering();
    const published = [];
    for (let i = 0; i < 5; i++) published.push((await publish('{}')).json.data.event_id);
    await consumer.arrival('agent.event', 5);
    await eventually(async () => {
      const { data } = (await call('GET', '/api/v1/sandbox')).json;
      expect(data.outbox).toMatchObject({ pending: 0, delivered: 6 });
    }, WAIT);
    const first = (await call('GET', '/api/v1/webhook/deliveries?event_type=agent.event&limit=3')).json.data;
    expect(first.deliveries.map((each: { event_id: string }) => each.event_id)).toEqual(
      published.toReversed().slice(0, 3),
    );
    const rest = (
      await call('GET', `/api/v1/webhook/deliveries?event_type=agent.event&cursor=${first.next_cursor}`)
    ).json.data;
    expect(rest.deliveries.map((each: { event_id: string }) => each.event_id)).toEqual(
      published.toReversed().slice(3),
    );
    expect(rest.next_cursor).toBeNull();
    expect((await call('GET', '/api/v1/webhook/deliveries?state=failed')).json.data.deliveries).toEqual([]);
    expect(Object.keys(rest.deliveries[0])).toEqual([
      'event_id',
      'event_type',
      'sequence',
      'state',
      'created_at',
      'finished_at',
      'next_attempt_at',
      'attempt_count',
      'last_status',
      'last_error',
      'last_error_detail',
    ]);
  });

  it.each([
    'state=lost',
    'limit=0',
    'limit=-1',
    'limit=x',
    'cursor=%00',
    'cursor=abc',
    'colour=red',
    'limit=1&limit=2',
  ])('are not listed for the invalid query %s', async (query) => {
    const { call } = await startDaemon();
    const answer = await call('GET', `/api/v1/webhook/deliveries?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.json.error.message).toContain(query.split('=')[0]);
  });

  it('are shown with body, headers and every attempt', async () => {
    const { publish, call, consumer } = await startDelivering('--webhook-secret', 'made for this test');
    consumer.answer = (_, response) => response.writeHead(404).end('no such hook');
    const { event_id } = (await publish('{"a":1.10}')).json.data;
    const detail = await eventually(async () => {
      const { data } = (await call('GET', `/api/v1/webhook/deliveries/${event_id}`)).json;
      expect(data.state).toBe('failed');
      return data;
    }, WAIT);
    const [sent] = consumer.of('agent.event');
    expect(detail.body).toBe(sent?.body);
    expect(detail.headers['X-Service-Signature']).toBe(sent?.headers['x-service-signature']);
    expect(detail.attempts).toEqual([
      {
        attempt: 1,
        started_at: expect.stringMatching(/Z$/),
        duration_ms: expect.any(Number),
        status: 404,
        error: null,
        error_detail: '404 Not Found',
        next_attempt_at: null,
        response_body: 'no such hook',
      },
    ]);
  });

  it('are sent again by a replay with the same bytes and the next attempt number', async () => {
    const { publish, call, consumer } = await startDelivering();
    consumer.answer = (_, response) => response.writeHead(410).end();
    const { event_id } = (await publish('{"a":1.10}')).json.data;
    await eventually(async () => {
      expect((await call('GET', `/api/v1/webhook/deliveries/${event_id}`)).json.data.state).toBe('failed');
    }, WAIT);
    consumer.answer = (_, response) => response.writeHead(200).end();
    expect((await call('POST', `/api/v1/webhook/deliveries/${event_id}/replay`)).status).toBe(200);
    await eventually(async () => {
      expect((await call('GET', `/api/v1/webhook/deliveries/${event_id}`)).json.data.state).toBe('delivered');
    }, WAIT);
    const sent = consumer.deliveries.filter(({ event }) => event.event_id === event_id);
    expect(sent.map(({ headers }) => headers['x-service-attempt'])).toEqual(['1', '2']);
    expect(sent[1]?.body).toBe(sent[0]?.body);
  });

  it('answer 404 for an unknown event, whether shown or replayed', async () => {
    const { call } = await startDelivering();
    expect((await call('GET', '/api/v1/webhook/deliveries/evt_x')).status).toBe(404);
    expect((await call('POST', '/api/v1/webhook/deliveries/evt_x/replay')).status).toBe(404);
  });

  it('of one state are replayed together', async () => {
    const { publish, call, consumer } = await startDelivering();
    consumer.answer = ({ event }, response) =>
      response.writeHead(event.event_type === 'agent.event' ? 422 : 204).end();
    for (let i = 0; i < 4; i++) await publish('{}');
    await eventually(async () => {
      expect((await call('GET', '/api/v1/sandbox')).json.data.outbox.failed).toBe(4);
    }, WAIT);
    consumer.answer = (_, response) => response.writeHead(204).end();
    const answer = await call('POST', '/api/v1/webhook/deliveries/replay?state=failed');
    expect(answer.json.data).toEqual({ replayed: 4 });
    await eventually(async () => {
      expect((await call('GET', '/api/v1/sandbox')).json.data.outbox).toMatchObject({
        failed: 0,
        pending: 0,
      });
    }, WAIT);
    expect((await call('POST', '/api/v1/webhook/deliveries/replay?state=pending')).status).toBe(400);
    expect((await call('POST', '/api/v1/webhook/deliveries/replay')).status).toBe(400);
  });

  it('are discarded one by one or by state, and are no longer shown; what is pending is 409', async () => {
    const { publish, call, consumer } = await startDelivering();
    const path = '/api/v1/webhook/deliveries';
    consumer.answer = ({ event }, response) =>
      response.writeHead({ refused: 422, later: 503 }[String(event.payload.answer)] ?? 204).end();
    const { event_id } = (await publish('{"answer":"refused"}')).json.data;
    for (let i = 0; i < 2; i++) await publish('{"answer":"refused"}');
    const later = (await publish('{"answer":"later"}')).json.data.event_id;
    await eventually(async () => {
      const { failed } = (await call('GET', '/api/v1/sandbox')).json.data.outbox;
      expect([failed, consumer.find(later) !== undefined]).toEqual([3, true]);
    }, WAIT);
    expect((await call('DELETE', `${path}/${event_id}`)).json.data).toEqual({ discarded: 1 });
    for (const method of ['GET', 'DELETE'])
      expect((await call(method, `${path}/${event_id}`)).status).toBe(404);
    expect(await call('DELETE', `${path}/${later}`)).toMatchObject({
      status: 409,
      json: { error: { code: 'conflict', message: expect.stringContaining('pending') } },
    });
    expect((await call('DELETE', `${path}?state=failed`)).json.data).toEqual({ discarded: 2 });
    const { outbox } = (await call('GET', '/api/v1/sandbox')).json.data;
    expect(outbox).toMatchObject({ failed: 0, pending: 1 });
    for (const query of ['', '?state=delivered', '?state=pending', '?states=failed'])
      expect((await call('DELETE', path + query)).status).toBe(400);
  });

  it('of a test event are waited for', async () => {
    const { call, consumer } = await startDelivering();
    const answer = await call('POST', '/api/v1/webhook/test');
    expect(answer).toMatchObject({
      status: 200,
      json: { data: { state: 'delivered', event_type: 'agent.event' } },
    });
    expect((await consumer.arrival('agent.event')).body).toContain('"payload":{"test":true}}');
  });
});
