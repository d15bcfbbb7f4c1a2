import { once } from 'node:events';
import { connect, createConnection } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { startDaemon } from '../../support/daemon/running-daemon.ts';
import { exchange } from '../../support/raw-socket.ts';
import { answerTo, refusedRequests } from '../../support/refused-requests.ts';

const PUBLISH = '/api/v1/webhook/publish';
const ENVELOPE = { success: false, error: { message: expect.stringMatching(/./) } };

describe('an answer of the application', () => {
  it('to a request that is not served is the envelope with a request id, and the next request is served as usual', async () => {
    const { port, call, token } = await startDaemon();
    for (const [name, request, status, code] of refusedRequests('/api/v1/sandbox')) {
      const { status: given, head, body } = await answerTo(port, request);
      expect([given, JSON.parse(body)], name).toMatchObject([status, { ...ENVELOPE, error: { code } }]);
      expect(head, name).toMatch(/x-request-id: \S+/i);
      if (status === 405) expect(head, name).toMatch(/^allow: GET$/im);
    }
    expect((await call('GET', '/api/v1/sandbox')).status).toBe(200);
    const absolute = `GET http://localhost:${port}/api/v1/sandbox HTTP/1.1\r\nHost: localhost:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    expect((await answerTo(port, absolute)).status).toBe(200);
  });

  it('names every allowed method of a path, and says what is too long', async () => {
    const { port, call } = await startDaemon();
    const put = await call('PUT', '/api/v1/processes/p');
    expect([put.status, put.headers.allow]).toEqual([405, 'GET, DELETE']);
    const odd = await call('QUERY', '/api/v1/webhook/deliveries/replay');
    expect([odd.status, odd.headers.allow]).toEqual([405, 'GET, DELETE, POST']);
    const long = await call('GET', `/api/v1/processes/${'x'.repeat(300)}`);
    expect([long.status, long.json.error.code]).toEqual([400, 'invalid_request']);
    const large = `POST /api/v1/webhook/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999999\r\n\r\n`;
    expect(JSON.parse((await answerTo(port, large)).body).error.code).toBe('payload_too_large');
  });

  it('is given as usual after a WebSocket request that was pipelined behind another', async () => {
    const { port, call } = await startDaemon();
    const first = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const upgrade = 'GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    await exchange({ host: '127.0.0.1', port }, first + upgrade, { quiet_ms: 200 });
    expect((await call('GET', '/api/v1/sandbox')).status).toBe(200);
  });

  it('that is being streamed stays whole when bytes that are not HTTP follow the request', async () => {
    const { port, token } = await startDaemon();
    const socket = connect(port, '127.0.0.1').setEncoding('latin1');
    socket.write(
      `GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    );
    const [head] = await once(socket, 'data');
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    socket.write('\0\0\0');
    const rest = await textOf(socket).catch(() => '');
    expect(rest).not.toContain('HTTP/1.1');
  });

  it('carries a new X-Request-Id each time, also with an error', async () => {
    const { call } = await startDaemon();
    const ids = [];
    for (const path of ['/healthz', '/nowhere', '/api/v1/sandbox']) {
      ids.push((await call('GET', path, { token: null })).headers['x-request-id']);
    }
    expect(ids.every((id) => typeof id === 'string' && id.length > 8)).toBe(true);
    expect(new Set(ids).size).toBe(3);
  });

  it('to an unknown path is 404, in the envelope', async () => {
    const { call } = await startDaemon();
    expect(await call('GET', '/api/v1/nowhere')).toMatchObject({
      status: 404,
      json: {
        success: false,
        error: { code: 'not_found', message: expect.stringMatching(/^No such route: GET \//) },
      },
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
  ])('to %s %s is 405 with the allowed methods', async (method, path, allow) => {
    const { call } = await startDaemon();
    const answer = await call(method, path);
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe(allow);
    if (method !== 'HEAD') expect(answer.json.error.code).toBe('method_not_allowed');
  });

  it('to a malformed URL or request is 400, in the envelope', async () => {
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
    ['POST', '/api/v1/sandbox/pause', '{"memory":"yes"}', 'memory'],
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
