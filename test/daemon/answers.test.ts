import { once } from 'node:events';
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { exchange } from '../support/raw-socket.ts';
import { answerTo, refusedRequests } from '../support/refused-requests.ts';

const ENVELOPE = { success: false, error: { message: expect.stringMatching(/./) } };

describe('every answer of the daemon', () => {
  it('to a request that is not served is the envelope with a request id, and the next request is normal', async () => {
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

  it('names all methods of a path, and takes over-long ids for what they are', async () => {
    const { port, call } = await startDaemon();
    const put = await call('PUT', '/api/v1/processes/p');
    expect([put.status, put.headers.allow]).toEqual([405, 'GET, DELETE']);
    const odd = await call('QUERY', '/api/v1/webhook/deliveries/replay');
    expect([odd.status, odd.headers.allow]).toEqual([405, 'GET, POST']);
    const long = await call('GET', `/api/v1/processes/${'x'.repeat(300)}`);
    expect([long.status, long.json.error.code]).toEqual([400, 'invalid_request']);
    const large = `POST /api/v1/webhook/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999999\r\n\r\n`;
    expect(JSON.parse((await answerTo(port, large)).body).error.code).toBe('payload_too_large');
  });

  it('outlives a request for a WebSocket that is pipelined behind another', async () => {
    const { port, call } = await startDaemon();
    const first = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const upgrade = 'GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    await exchange({ host: '127.0.0.1', port }, first + upgrade, { quiet_ms: 200 });
    expect((await call('GET', '/api/v1/sandbox')).status).toBe(200);
  });

  it('under way stays whole when bytes that are no HTTP follow the request', async () => {
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
});
