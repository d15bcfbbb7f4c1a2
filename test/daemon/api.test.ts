import { createConnection, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';

const PUBLISH = '/api/v1/webhook/publish';
const EVENT_ID = /^evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A daemon whose receiver takes everything. */
async function delivering(...args: string[]) {
  const consumer = await startConsumer();
  return { consumer, ...(await startDaemon('--webhook-url', consumer.url, '--sandbox-id', 'sb-1', ...args)) };
}

describe('a publish', () => {
  it('is answered with its event id and sequence, and arrives as it was written', async () => {
    const { consumer, publish } = await delivering();
    const payload = '{ "price":1.10,"huge":1e400,\n"id":12345678901234567890,"text":"ü🦊"}';
    const answer = await publish(payload);
    expect(answer.status).toBe(202);
    expect(answer.json).toEqual({
      success: true,
      data: { event_id: expect.stringMatching(EVENT_ID), sequence: 2 },
    });
    const { body } = await consumer.arrival('agent.event');
    expect(body).toContain(`"payload":${payload}}`);
    expect(JSON.parse(body).event_id).toBe(answer.json.data.event_id);
  });

  it('needs no token, and takes the content type with parameters', async () => {
    const { call } = await delivering();
    const answer = await call('POST', PUBLISH, {
      token: null,
      body: '{"payload":{}}',
      headers: { 'content-type': 'application/json; charset=utf-8' },
    });
    expect(answer.status).toBe(202);
  });

  it('with the same Idempotency-Key and payload is answered as the first, with another payload 409', async () => {
    const { publish, consumer, call } = await delivering();
    const first = await publish('{"a":1}', { 'idempotency-key': 'key-1' });
    expect(await publish('{"a":1}', { 'idempotency-key': 'key-1' })).toMatchObject({
      status: 202,
      json: first.json,
    });
    expect(await publish('{"a": 1}', { 'idempotency-key': 'key-1' })).toMatchObject({
      status: 409,
      json: { success: false, error: { code: 'conflict' } },
    });
    expect((await publish('{"a":1}', { 'idempotency-key': 'key-2' })).json.data.event_id).not.toBe(
      first.json.data.event_id,
    );
    await consumer.arrival('agent.event', 2);
    const { data } = (await call('GET', '/api/v1/webhook/deliveries?event_type=agent.event')).json;
    expect(data.deliveries).toHaveLength(2);
  });

  it.each(['', 'has space', 'x'.repeat(129), 'tab\there', 'caf\u00e9'])(
    'with the Idempotency-Key %j is refused',
    async (key) => {
      const { publish } = await delivering();
      const answer = await publish('{}', { 'idempotency-key': key });
      expect(answer).toMatchObject({ status: 400, json: { error: { code: 'invalid_request' } } });
      expect(answer.json.error.message).toContain('Idempotency-Key');
    },
  );

  it('without a webhook is answered 409', async () => {
    const { publish } = await startDaemon();
    expect(await publish('{}')).toMatchObject({
      status: 409,
      json: { success: false, error: { code: 'webhook_not_configured' } },
    });
  });

  it.each(['text/plain', 'application/jsonx', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
    'of type %s is answered 415',
    async (type) => {
      const { publish } = await delivering();
      expect(await publish('{}', { 'content-type': type })).toMatchObject({
        status: 415,
        json: { error: { code: 'unsupported_media_type' } },
      });
    },
  );

  it('without a body is answered 415, and with an empty one 400', async () => {
    const { call } = await delivering();
    expect((await call('POST', PUBLISH)).status).toBe(415);
    expect((await call('POST', PUBLISH, { body: '' })).status).toBe(400);
  });

  it('beyond the bounds is answered 503 with Retry-After, and what was acknowledged stays', async () => {
    const { publish, call, consumer } = await delivering('--outbox-max-records', '5');
    consumer.answer = (_, response) => response.writeHead(503).end();
    const answers = [];
    for (let i = 0; i < 10; i++) answers.push(await publish(`{"i":${i}}`));
    const refused = answers.filter(({ status }) => status === 503);
    expect(refused.length).toBeGreaterThanOrEqual(5);
    expect(refused[0]).toMatchObject({ json: { error: { code: 'outbox_full' } } });
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0);
    const kept = answers.filter(({ status }) => status === 202).length;
    expect(
      (await call('GET', '/api/v1/webhook/deliveries?event_type=agent.event')).json.data.deliveries,
    ).toHaveLength(kept);
  });
});

/** A request whose body is written a part at a time; resolves with what came back when the connection ended. */
function rawAnswer(port: number, head: string, write: (socket: Socket) => void): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    socket.write(`${head}\r\nHost: localhost\r\nContent-Type: application/json\r\n`, () => write(socket));
  });
}

describe('a body of more than a mebibyte', () => {
  it('is answered 413 by its length, before any of it has come', async () => {
    const { port } = await delivering();
    const answer = await rawAnswer(port, `POST ${PUBLISH} HTTP/1.1`, (socket) =>
      socket.write(`Content-Length: ${2 ** 20 + 1}\r\n\r\n`),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('"code":"payload_too_large"');
  });

  it('is answered 413 in chunks, without being read to its end', async () => {
    const { port } = await delivering();
    let sent = 0;
    const answer = await rawAnswer(port, `POST ${PUBLISH} HTTP/1.1`, (socket) => {
      socket.write('Transfer-Encoding: chunked\r\n\r\n');
      const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
      const write = () => {
        if (socket.destroyed || socket.writableEnded) return;
        sent += 0x10000;
        if (sent > 1e9) return socket.destroy();
        if (socket.write(chunk)) setImmediate(write);
        else socket.once('drain', write);
      };
      write();
    });
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(sent).toBeLessThan(64 * 2 ** 20);
  });

  it('of exactly a mebibyte is taken', async () => {
    const { call } = await delivering();
    const body = `{"payload":{"a":"${'x'.repeat(2 ** 20 - 20)}"}}`;
    expect(Buffer.byteLength(body)).toBe(2 ** 20);
    expect((await call('POST', PUBLISH, { body })).status).toBe(202);
  });
});

describe('the guard', () => {
  it.each(['localhost', 'LOCALHOST:1', '127.0.0.1', '127.0.0.1:80', '[::1]', '[::1]:49983'])(
    'serves the host %s',
    async (host) => {
      const { call } = await startDaemon();
      expect((await call('GET', '/healthz', { headers: { host } })).status).toBe(200);
    },
  );

  it.each([
    'example.test',
    'localhost.example.test',
    '127.0.0.2',
    '0.0.0.0',
    '[::]',
    'localhost:80:80',
    '::1',
  ])('refuses the host %j on every path', async (host) => {
    const { call } = await startDaemon();
    for (const path of ['/healthz', '/api/v1/sandbox', PUBLISH, '/nowhere']) {
      expect((await call('POST', path, { headers: { host } })).status, path).toBe(403);
    }
  });

  it('serves the host that it was told to listen on', async () => {
    const { call } = await startDaemon('--host', '127.0.0.1');
    expect((await call('GET', '/healthz', { headers: { host: '127.0.0.1' } })).status).toBe(200);
  });

  it('serves its own origin and no other', async () => {
    const { publish, port } = await delivering();
    for (const origin of [`http://localhost:${port}`, `http://127.0.0.1:${port}`, `http://[::1]:${port}`]) {
      expect((await publish('{}', { origin })).status, origin).toBe(202);
    }
    const foreign = ['null', 'http://localhost', `https://localhost:${port}`, `http://example.test:${port}`];
    for (const origin of [...foreign, `http://localhost:${port}.example.test`, '', 'file://']) {
      expect((await publish('{}', { origin })).status, origin).toBe(403);
    }
  });

  it('refuses what another site makes a browser send', async () => {
    const { publish } = await delivering();
    expect((await publish('{}', { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    for (const site of ['same-origin', 'same-site', 'none']) {
      expect((await publish('{}', { 'sec-fetch-site': site })).status, site).toBe(202);
    }
  });

  it('answers no preflight and sets no CORS header', async () => {
    const { call, port } = await delivering();
    const answer = await call('OPTIONS', PUBLISH, {
      headers: { origin: `http://localhost:${port}`, 'access-control-request-method': 'POST' },
    });
    expect(answer.status).toBe(405);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it.each<[string, string]>([
    ['GET', '/api/v1/sandbox'],
    ['GET', '/api/v1/webhook/deliveries'],
    ['GET', '/api/v1/events/stream'],
    ['POST', '/api/v1/webhook/test'],
    ['POST', '/api/v1/webhook/deliveries/replay?state=failed'],
    ['POST', '/api/v1/sandbox/pause'],
    ['POST', '/api/v1/sandbox/init'],
    ['PUT', '/api/v1/sandbox/env'],
    ['POST', '/api/v1/processes'],
    ['GET', '/api/v1/processes'],
  ])('wants the control token for %s %s', async (method, path) => {
    const { call, state_dir } = await startDaemon();
    for (const token of [null, 'x', '', '0'.repeat(64), `${'0'.repeat(64)} `]) {
      const answer = await call(method, path, { token });
      expect(answer.status, `${token}`).toBe(401);
      expect(answer.json.error.code).toBe('unauthorized');
    }
    expect(state_dir).toBeTruthy();
  });

  it.each(['/healthz', '/readyz', '/metrics'])('wants no token for %s', async (path) => {
    const { call } = await startDaemon();
    expect((await call('GET', path, { token: null })).status).toBe(200);
  });
});

describe('an answer', () => {
  it('carries X-Request-Id, a new one each time, errors included', async () => {
    const { call } = await startDaemon();
    const ids = [];
    for (const path of ['/healthz', '/nowhere', '/api/v1/sandbox']) {
      ids.push((await call('GET', path, { token: null })).headers['x-request-id']);
    }
    expect(ids.every((id) => typeof id === 'string' && id.length > 8)).toBe(true);
    expect(new Set(ids).size).toBe(3);
  });

  it('to an unknown path is 404 in the envelope', async () => {
    const { call } = await startDaemon();
    expect(await call('GET', '/api/v1/nowhere')).toMatchObject({
      status: 404,
      json: { success: false, error: { code: 'not_found', message: expect.any(String) } },
    });
  });

  it.each<[string, string, string]>([
    ['GET', PUBLISH, 'POST'],
    ['DELETE', PUBLISH, 'POST'],
    ['HEAD', '/healthz', 'GET'],
    ['OPTIONS', '/healthz', 'GET'],
    ['PUT', '/healthz', 'GET'],
    ['POST', '/api/v1/sandbox', 'GET'],
    ['GET', '/api/v1/sandbox/env', 'PUT'],
  ])('to %s %s is 405 with what is allowed', async (method, path, allow) => {
    const { call } = await startDaemon();
    const answer = await call(method, path);
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe(allow);
    if (method !== 'HEAD') expect(answer.json.error.code).toBe('method_not_allowed');
  });

  it('to a broken URL or request is 400 in the envelope', async () => {
    const { call, port } = await startDaemon();
    expect((await call('GET', '/api/v1/%E0%A4%A')).status).toBe(400);
    const answer = await new Promise<string>((resolve) => {
      const socket = createConnection(port, '127.0.0.1', () => socket.write('NONSENSE\r\n\r\n'));
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk.toString();
      });
      socket.on('close', () => resolve(text));
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"code":"invalid_request"');
  });

  it.each<[string, string, string, string]>([
    ['POST', '/api/v1/sandbox/pause', '{"reson":"x"}', 'reson: unknown field'],
    ['POST', '/api/v1/sandbox/pause', '{"reason":1}', 'reason'],
    ['POST', '/api/v1/sandbox/pause', '{', 'body: must be JSON'],
    ['PUT', '/api/v1/sandbox/env', '{}', 'env: is required'],
    ['PUT', '/api/v1/sandbox/env', '{"env":{"A":1}}', 'env'],
    ['PUT', '/api/v1/sandbox/env', '{"env":{"A=B":"x"}}', 'env'],
  ])('to %s %s with %s names the field', async (method, path, body, message) => {
    const { call } = await startDaemon();
    const answer = await call(method, path, { body });
    expect(answer.status).toBe(400);
    expect(answer.json.error.message).toContain(message);
  });
});

describe('deliveries', () => {
  it('are listed newest first, a page at a time, and narrowed by state and type', async () => {
    const { publish, call, consumer } = await delivering();
    const published = [];
    for (let i = 0; i < 5; i++) published.push((await publish('{}')).json.data.event_id);
    await consumer.arrival('agent.event', 5);
    await vi.waitFor(async () => {
      const { data } = (await call('GET', '/api/v1/sandbox')).json;
      expect(data.outbox).toMatchObject({ pending: 0, delivered: 6 });
    });
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
  ])('are refused for the query %s', async (query) => {
    const { call } = await startDaemon();
    const answer = await call('GET', `/api/v1/webhook/deliveries?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.json.error.message).toContain(query.split('=')[0]);
  });

  it('show the body, the headers and every attempt', async () => {
    const { publish, call, consumer } = await delivering('--webhook-secret', 'made for this test');
    consumer.answer = (_, response) => response.writeHead(404).end('no such hook');
    const { event_id } = (await publish('{"a":1.10}')).json.data;
    const detail = await vi.waitFor(async () => {
      const { data } = (await call('GET', `/api/v1/webhook/deliveries/${event_id}`)).json;
      expect(data.state).toBe('failed');
      return data;
    });
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
        next_attempt_at: null,
        response_body: 'no such hook',
      },
    ]);
  });

  it('are sent again by a replay, with the same bytes and the next attempt number', async () => {
    const { publish, call, consumer } = await delivering();
    consumer.answer = (_, response) => response.writeHead(410).end();
    const { event_id } = (await publish('{"a":1.10}')).json.data;
    await vi.waitFor(async () => {
      expect((await call('GET', `/api/v1/webhook/deliveries/${event_id}`)).json.data.state).toBe('failed');
    });
    consumer.answer = (_, response) => response.writeHead(200).end();
    expect((await call('POST', `/api/v1/webhook/deliveries/${event_id}/replay`)).status).toBe(200);
    await vi.waitFor(async () => {
      expect((await call('GET', `/api/v1/webhook/deliveries/${event_id}`)).json.data.state).toBe('delivered');
    });
    const sent = consumer.deliveries.filter(({ event }) => event.event_id === event_id);
    expect(sent.map(({ headers }) => headers['x-service-attempt'])).toEqual(['1', '2']);
    expect(sent[1]?.body).toBe(sent[0]?.body);
  });

  it('that do not exist are 404, shown or replayed', async () => {
    const { call } = await delivering();
    expect((await call('GET', '/api/v1/webhook/deliveries/evt_x')).status).toBe(404);
    expect((await call('POST', '/api/v1/webhook/deliveries/evt_x/replay')).status).toBe(404);
  });

  it('of a state are all replayed at once', async () => {
    const { publish, call, consumer } = await delivering();
    consumer.answer = ({ event }, response) =>
      response.writeHead(event.event_type === 'agent.event' ? 422 : 204).end();
    for (let i = 0; i < 4; i++) await publish('{}');
    await vi.waitFor(async () => {
      expect((await call('GET', '/api/v1/sandbox')).json.data.outbox.failed).toBe(4);
    });
    consumer.answer = (_, response) => response.writeHead(204).end();
    const answer = await call('POST', '/api/v1/webhook/deliveries/replay?state=failed');
    expect(answer.json.data).toEqual({ replayed: 4 });
    await vi.waitFor(async () => {
      expect((await call('GET', '/api/v1/sandbox')).json.data.outbox).toMatchObject({
        failed: 0,
        pending: 0,
      });
    });
    expect((await call('POST', '/api/v1/webhook/deliveries/replay?state=pending')).status).toBe(400);
    expect((await call('POST', '/api/v1/webhook/deliveries/replay')).status).toBe(400);
  });

  it('of a test are waited for', async () => {
    const { call, consumer } = await delivering();
    const answer = await call('POST', '/api/v1/webhook/test');
    expect(answer).toMatchObject({
      status: 200,
      json: { data: { state: 'delivered', event_type: 'agent.event' } },
    });
    expect((await consumer.arrival('agent.event')).body).toContain('"payload":{"test":true}}');
  });
});

describe('pause and resume', () => {
  it('hold deliveries back and let them go on, and tell both once', async () => {
    const { call, publish, consumer } = await delivering();
    await consumer.arrival('sandbox.ready');
    expect((await call('POST', '/api/v1/sandbox/pause', { body: '{"reason":"idle"}' })).json.data).toEqual({
      state: 'paused',
    });
    expect((await call('POST', '/api/v1/sandbox/pause')).json.data).toEqual({ state: 'paused' });
    const { event } = await consumer.arrival('sandbox.paused');
    expect(event.payload).toEqual({
      reason: 'idle',
      resource_usage: {
        cpu_ms: expect.any(Number),
        memory_bytes: expect.any(Number),
        processes: expect.any(Number),
      },
    });
    const { event_id } = (await publish('{}')).json.data;
    const shown = await call('GET', `/api/v1/webhook/deliveries/${event_id}`);
    expect(shown.json.data).toMatchObject({ state: 'pending', attempts: [] });
    expect((await call('POST', '/api/v1/sandbox/resume')).json.data).toEqual({ state: 'running' });
    expect((await call('POST', '/api/v1/sandbox/resume')).json.data).toEqual({ state: 'running' });
    await consumer.arrival('agent.event');
    const resumed = await consumer.arrival('sandbox.resumed');
    expect(resumed.event.payload).toEqual({ reason: null, paused_ms: expect.any(Number) });
    expect(consumer.types).toEqual(['sandbox.ready', 'sandbox.paused', 'agent.event', 'sandbox.resumed']);
  });

  it('are refused with 409 before the init', async () => {
    const { call } = await startDaemon('--await-init');
    expect((await call('POST', '/api/v1/sandbox/pause')).status).toBe(409);
    expect((await call('POST', '/api/v1/sandbox/resume')).status).toBe(409);
  });
});

describe('init', () => {
  it('makes the sandbox once; the same body again is taken, another is 409', async () => {
    const consumer = await startConsumer();
    const { call, publish } = await startDaemon('--await-init');
    expect((await call('GET', '/api/v1/sandbox')).json.data).toMatchObject({
      state: 'awaiting_init',
      sandbox_id: '',
    });
    expect((await call('GET', '/readyz')).status).toBe(503);
    expect((await publish('{}')).status).toBe(409);
    const body = JSON.stringify({
      sandbox_id: 'sb-9',
      team_id: 'team-9',
      webhook: { url: consumer.url, secret: 'made for this test' },
      env: { GREETING: 'hello' },
    });
    const both = await Promise.all([
      call('POST', '/api/v1/sandbox/init', { body }),
      call('POST', '/api/v1/sandbox/init', { body }),
    ]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect((await call('POST', '/api/v1/sandbox/init', { body })).status).toBe(200);
    const other = body.replace('sb-9', 'sb-10');
    expect((await call('POST', '/api/v1/sandbox/init', { body: other })).status).toBe(409);
    expect((await call('GET', '/readyz')).status).toBe(200);
    expect((await publish('{}')).status).toBe(202);
    await consumer.arrival('agent.event');
    expect(consumer.types).toEqual(['sandbox.ready', 'agent.event']);
    expect(consumer.unsigned('made for this test')).toEqual([]);
    expect(consumer.deliveries[0]?.event).toMatchObject({ sandbox_id: 'sb-9', team_id: 'team-9' });
  });

  it('is refused with 409 where it was not asked for', async () => {
    const { call } = await startDaemon();
    const body = '{"sandbox_id":"a","team_id":"b","webhook":{"url":"http://127.0.0.1:1/"}}';
    expect((await call('POST', '/api/v1/sandbox/init', { body })).status).toBe(409);
  });

  it.each<[string, string]>([
    ['{"team_id":"t"}', 'sandbox_id'],
    ['{"sandbox_id":"","team_id":"t"}', 'sandbox_id'],
    ['{"sandbox_id":"has space","team_id":"t"}', 'sandbox_id'],
    ['{"sandbox_id":"s","team_id":"t","webhook":{"url":"nonsense"}}', 'webhook.url'],
    [
      '{"sandbox_id":"s","team_id":"t","webhook":{"url":"http://a.test/","watch_dir":"relative"}}',
      'webhook.watch_dir',
    ],
    ['{"sandbox_id":"s","team_id":"t","env":{"A=B":"x"}}', 'env'],
    ['{"sandbox_id":"s","team_id":"t","colour":"red"}', 'colour'],
    ['[]', 'body'],
  ])('with the body %s names the field, and may come again', async (body, field) => {
    const { call } = await startDaemon('--await-init');
    const answer = await call('POST', '/api/v1/sandbox/init', { body });
    expect(answer.status).toBe(400);
    expect(answer.json.error.message).toContain(field);
    const good = '{"sandbox_id":"s","team_id":"t"}';
    expect((await call('POST', '/api/v1/sandbox/init', { body: good })).status).toBe(200);
  });

  it("with the daemon's own address is refused", async () => {
    const { call, port } = await startDaemon('--await-init');
    const body = JSON.stringify({
      sandbox_id: 's',
      team_id: 't',
      webhook: { url: `http://127.1:${port}${PUBLISH}` },
    });
    expect((await call('POST', '/api/v1/sandbox/init', { body })).status).toBe(400);
  });
});

describe('the environment of later processes', () => {
  it('is set and taken away by name, and its values are never answered', async () => {
    const { call } = await startDaemon();
    const put = (env: object) => call('PUT', '/api/v1/sandbox/env', { body: JSON.stringify({ env }) });
    expect((await put({ B: 'made for this test', A: '1' })).json.data).toEqual({ names: ['A', 'B'] });
    expect((await put({ A: null, C: '' })).json.data).toEqual({ names: ['B', 'C'] });
    const shown = await call('GET', '/api/v1/sandbox');
    expect(shown.text).not.toContain('made for this test');
  });
});

/** Reads server-sent events until so many have come. */
async function readStream(port: number, token: string, headers: Record<string, string>, count: number) {
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/events/stream`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: abort.signal,
  });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const events: { id: string; event: string; data: string }[] = [];
  const read = (async () => {
    let text = '';
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const lines = text.slice(0, end).split(/\r\n|\r|\n/);
        text = text.slice(end + 2);
        const field = (name: string) =>
          lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
        const [id] = field('id');
        if (id !== undefined)
          events.push({ id, event: field('event')[0] ?? '', data: field('data').join('\n') });
        if (events.length >= count) return;
      }
    }
  })();
  return { events, read };
}

describe('the stream of events', () => {
  it('gives everything kept after Last-Event-ID, then what is committed', async () => {
    const { token, port, publish } = await delivering();
    for (let i = 1; i <= 3; i++) await publish(`{"i":${i}}`);
    const all = await readStream(port, token, { 'last-event-id': '0' }, 6);
    const resumed = await readStream(port, token, { 'last-event-id': '3' }, 3);
    await publish('{"i":4}');
    await publish('{"i":5}');
    await Promise.all([all.read, resumed.read]);
    expect(all.events.map(({ id, event }) => [id, event])).toEqual([
      ['1', 'sandbox.ready'],
      ...['2', '3', '4', '5', '6'].map((id) => [id, 'agent.event']),
    ]);
    expect(resumed.events.map(({ data }) => JSON.parse(data).payload.i)).toEqual([3, 4, 5]);
  });

  it('gives without Last-Event-ID what is committed from now on', async () => {
    const { token, port, publish } = await delivering();
    await publish('{"i":1}');
    const stream = await readStream(port, token, {}, 1);
    await publish('{"i":2}');
    await stream.read;
    expect(stream.events.map(({ id }) => id)).toEqual(['3']);
  });

  it('gives a body whole whatever line ends it holds', async () => {
    const { token, port, publish } = await delivering();
    const stream = await readStream(port, token, {}, 1);
    await publish('{"a":\n1,\r"b":\r\n2}');
    await stream.read;
    expect(JSON.parse(stream.events[0]?.data ?? '').payload).toEqual({ a: 1, b: 2 });
  });

  it('gives each of many that are committed while it is read once, in order', async () => {
    const { token, port, publish } = await delivering();
    const count = 1_500;
    const { events, read } = await readStream(port, token, { 'last-event-id': '0' }, count + 1);
    for (let i = 0; i < count; i += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, n) => publish(`{"i":${i + n}}`)));
    }
    await read;
    expect(events.map(({ id }) => Number(id))).toEqual(Array.from({ length: count + 1 }, (_, n) => n + 1));
    expect(new Set(events.map(({ data }) => JSON.parse(data).event_id)).size).toBe(count + 1);
  });

  it('begins now for a Last-Event-ID above the last sequence, as one of the parent of a fork', async () => {
    const { token, port, publish } = await delivering();
    await publish('{"i":1}');
    const { events, read } = await readStream(port, token, { 'last-event-id': '999' }, 1);
    await publish('{"i":2}');
    await read;
    expect(events.map(({ data }) => JSON.parse(data).payload)).toEqual([{ i: 2 }]);
  });

  it('refuses a Last-Event-ID that is no sequence', async () => {
    const { call } = await startDaemon();
    const answer = await call('GET', '/api/v1/events/stream', { headers: { 'last-event-id': 'x' } });
    expect(answer).toMatchObject({ status: 400, json: { error: { code: 'invalid_request' } } });
  });
});
