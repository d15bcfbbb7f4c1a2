import { createConnection, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startDaemon, startDelivering } from '../../../support/daemon/running-daemon.ts';

const PUBLISH = '/api/v1/webhook/publish';
const EVENT_ID = /^evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('a publish', () => {
  it('is answered with its event id and sequence, and delivered exactly as it was written', async () => {
    const { consumer, publish } = await startDelivering();
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

  it('requires no token, and accepts a content type with parameters', async () => {
    const { call } = await startDelivering();
    const answer = await call('POST', PUBLISH, {
      token: null,
      body: '{"payload":{}}',
      headers: { 'content-type': 'application/json; charset=utf-8' },
    });
    expect(answer.status).toBe(202);
  });

  it('with a repeated Idempotency-Key gets the first answer for the same payload, and 409 for another', async () => {
    const { publish, consumer, call } = await startDelivering();
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
      const { publish } = await startDelivering();
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
      const { publish } = await startDelivering();
      expect(await publish('{}', { 'content-type': type })).toMatchObject({
        status: 415,
        json: { error: { code: 'unsupported_media_type' } },
      });
    },
  );

  it('without a body is answered 415, and with an empty one 400', async () => {
    const { call } = await startDelivering();
    expect((await call('POST', PUBLISH)).status).toBe(415);
    expect((await call('POST', PUBLISH, { body: '' })).status).toBe(400);
  });

  it('into a full outbox is answered 503 with Retry-After, and every acknowledged event is kept', async () => {
    const { publish, call, consumer } = await startDelivering('--outbox-max-records', '5');
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

/** Sends a request whose body is written bit by bit; resolves with the whole answer when the connection has ended. */
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

describe('a publish of about a mebibyte', () => {
  it('is answered 413 for a larger Content-Length, before any of the body has arrived', async () => {
    const { port } = await startDelivering();
    const answer = await rawAnswer(port, `POST ${PUBLISH} HTTP/1.1`, (socket) =>
      socket.write(`Content-Length: ${2 ** 20 + 1}\r\n\r\n`),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('"code":"payload_too_large"');
  });

  it('is answered 413 for larger chunks, without being read to the end', async () => {
    const { port } = await startDelivering();
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

  it('is accepted up to exactly a mebibyte', async () => {
    const { call } = await startDelivering();
    const body = `{"payload":{"a":"${'x'.repeat(2 ** 20 - 20)}"}}`;
    expect(Buffer.byteLength(body)).toBe(2 ** 20);
    expect((await call('POST', PUBLISH, { body })).status).toBe(202);
  });
});
