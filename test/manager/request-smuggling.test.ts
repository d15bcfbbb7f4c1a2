import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectControl } from '../../src/runtime/control-client.ts';
import { NoRuntime } from '../../src/runtime/no-runtime.ts';
import { DaemonRuntime } from '../support/manager/daemon-runtime.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { exchange, statusesOf } from '../support/raw-exchange.ts';
import { scratchFolder } from '../support/scratch.ts';

async function scene() {
  const runtime = new DaemonRuntime();
  const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, { runtime });
  const writer = await running.client('team_1', 'sandboxes:write');
  const reader = await running.client('team_1', 'sandboxes:read');
  const id = await writer.claim();
  const port = Number(new URL(running.manager.url).port);
  return { ...running, runtime, writer, reader, id, port, path: `/api/v1/sandboxes/${id}` };
}

const ran = join('/tmp', `smuggled-${process.pid}`);
const inner = [
  'POST /api/v1/processes HTTP/1.1',
  'Host: localhost',
  'X-Control-Scope: manage',
  'Content-Type: application/json',
  `Content-Length: ${JSON.stringify({ shell: `touch ${ran}` }).length}`,
  '',
  JSON.stringify({ shell: `touch ${ran}` }),
].join('\r\n');
const chunked = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;

describe('a request behind a request', () => {
  it.each([
    ['a chunked body of GET', 'GET', 'Transfer-Encoding: chunked', chunked],
    ['a body of GET with a length', 'GET', `Content-Length: ${inner.length}`, inner],
    ['a chunked body of DELETE', 'DELETE', 'Transfer-Encoding: chunked', chunked],
    ['a body of DELETE with a length', 'DELETE', `Content-Length: ${inner.length}`, inner],
    [
      'a body of an upgrade',
      'GET',
      `Content-Length: ${inner.length}\r\nConnection: Upgrade\r\nUpgrade: websocket`,
      inner,
    ],
    [
      'a body behind a request that names another upgrade',
      'GET',
      'Transfer-Encoding: chunked\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c',
      chunked,
    ],
  ])('is not read by the daemon: %s is refused', async (_, method, header, body) => {
    const { writer, reader, port, path } = await scene();
    for (const { token } of [reader, writer]) {
      for (const rest of ['/processes', '/processes/x', '/processes/x/attach', '/webhook/deliveries']) {
        const head = `${method} ${path}${rest} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${header}\r\n\r\n`;
        const [status = 0] = statusesOf(await exchange(port, head + body));
        expect([400, 403, 405], `${method} ${rest}`).toContain(status);
      }
    }
    expect((await writer.get(`${path}/processes`)).data.processes).toEqual([]);
  });

  it('does not come about by framing of two kinds, spaces or line ends', async () => {
    const { writer, port, path } = await scene();
    const head = `POST ${path}/processes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${writer.token}\r\nContent-Type: application/json\r\n`;
    for (const framing of [
      `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
      `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n${chunked}`,
      `Transfer-Encoding: xchunked\r\n\r\n${chunked}`,
      `Transfer-Encoding : chunked\r\n\r\n${chunked}`,
      `Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      `Content-Length: +4\r\n\r\n${inner}`,
      `X: y\n\n${inner}`,
      `Content-Length: 2\r\nConnection: content-length\r\n\r\n{}${inner}`,
      `Content-Length: 2\r\nTrailer: X-Control-Scope\r\nExpect: 100-continue\r\n\r\n{}${inner}`,
    ]) {
      await exchange(port, head + framing);
    }
    expect((await writer.get(`${path}/processes`)).data.processes).toEqual([]);
  });

  it('does not turn the answers of others', async () => {
    const { writer, reader, port, path } = await scene();
    const started = await writer.post(`${path}/processes`, { command: ['sleep', '30'] });
    const wait = `GET /api/v1/processes/${started.data.process_id}/wait?timeout_ms=500 HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const smuggled = `${wait.length.toString(16)}\r\n${wait}\r\n0\r\n\r\n`;
    await exchange(
      port,
      `GET ${path}/processes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${reader.token}\r\nTransfer-Encoding: chunked\r\n\r\n${smuggled}`,
    );
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => writer.get(`${path}/processes/${started.data.process_id}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  });
});

describe('the routes of a sandbox that are not its own callers’', () => {
  it('cannot be reached, however they are spelled', async () => {
    const { writer, port, path, runtime, id } = await scene();
    for (const rest of [
      'sandbox/stop',
      'sandbox/hold',
      'sandbox/init',
      'sandbox/env',
      'sandbox',
      'webhook/publish',
    ]) {
      for (const way of [
        `/${rest}`,
        `/processes/../${rest}`,
        `/processes/..%2f${rest.replaceAll('/', '%2f')}`,
        `/processes/%2e%2e/${rest}`,
        `/processes/x/../../${rest}`,
        `/processes/..;/${rest}`,
        `/processes/..\\${rest}`,
        `/processes//${rest}`,
        `/processes/x%00/../../${rest}`,
        `/processes/x%0d%0aX-Control-Scope:%20manage/signal`,
        `/webhook/deliveries/..%2f..%2f${rest.replaceAll('/', '%2f')}/replay`,
        `/processes/x#/../../${rest}`,
        `/processes?x=1#/../../${rest}`,
      ]) {
        for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
          const head = `${method} ${path}${way} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${writer.token}\r\nContent-Length: 0\r\n\r\n`;
          const [status = 0] = statusesOf(await exchange(port, head, 2_000));
          const is_read = method === 'GET' && way.startsWith('/processes?');
          expect(status, `${method} ${way}`).toBeGreaterThanOrEqual(is_read ? 200 : 400);
          expect(status, `${method} ${way}`).toBeLessThan(500);
        }
      }
    }
    expect(runtime.states.get(id)).toBe('running');
    expect((await writer.get(`${path}/processes`)).data.processes).toEqual([]);
  });
});

/** A sandbox whose daemon answers these bytes to everything. */
async function hostileDaemon(answer: string | ((write: (text: string) => boolean) => void)) {
  const socket_path = join(scratchFolder(), 'control.sock');
  const asked: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (bytes) => {
      asked.push(bytes.toString('latin1'));
      if (typeof answer === 'string') socket.end(answer, 'latin1');
      else answer((text) => !socket.destroyed && socket.write(text, 'latin1'));
    });
  });
  await new Promise<void>((resolve) => server.listen(socket_path, resolve));
  onTestFinished(() => void server.close());
  class HostileRuntime extends NoRuntime {
    override async connect() {
      return connectControl(socket_path);
    }
  }
  const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
    runtime: new HostileRuntime() as never,
  });
  const writer = await running.client('team_1', 'sandboxes:write');
  const id = await writer.claim();
  const port = Number(new URL(running.manager.url).port);
  const get = (rest: string, headers = '') =>
    exchange(
      port,
      `GET /api/v1/sandboxes/${id}${rest} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${writer.token}\r\n${headers}\r\n`,
    );
  return { ...running, asked, get, writer };
}

const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';

describe('the answer of a daemon that lies', () => {
  it('carries no header but those of its body', async () => {
    const { get, asked } = await hostileDaemon(
      [
        'HTTP/1.1 200 OK',
        'Content-Type: text/html',
        'Set-Cookie: session=stolen',
        'RateLimit: "api_requests";r=0',
        'Access-Control-Allow-Origin: *',
        'Location: http://elsewhere/',
        'Clear-Site-Data: "*"',
        'X-Request-Id: forged',
        'Connection: keep-alive, x-secret',
        'X-Secret: 1',
        'Trailer: Set-Cookie',
        'Retry-After: 1',
        'Transfer-Encoding: chunked',
        '',
        '5\r\n<b>x\n\r\n0\r\nSet-Cookie: trailer=1\r\n\r\n',
      ].join('\r\n'),
    );
    const received = await get('/processes');
    expect(statusesOf(received)).toEqual([200]);
    for (const word of [
      'stolen',
      'Access-Control',
      'Location',
      'Clear-Site',
      'forged',
      'Secret',
      'Trailer',
      'trailer',
      'text/html',
    ]) {
      expect(received.toLowerCase(), word).not.toContain(word.toLowerCase());
    }
    expect(received).toMatch(/^retry-after: 1\r$/im);
    expect(received).toMatch(/^x-content-type-options: nosniff\r$/im);
    expect(received).toContain('<b>x\n');
    expect(asked[0]).toMatch(/^x-control-scope: read\r$/im);
    expect(asked[0]).not.toMatch(/authorization/i);
  });

  it.each([
    [
      'a switch of protocols that nobody asked for',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    ],
    ['a status that is none', 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['a status below all', 'HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['interim answers without an end', 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'.repeat(5_000)],
    ['headers without an end', `HTTP/1.1 200 OK\r\n${'X-Pad: 1234567890\r\n'.repeat(20_000)}\r\n`],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\nx'],
    [
      'a bare line feed in a header',
      'HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b=c\r\nContent-Length: 0\r\n\r\n\x00',
    ],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['nothing', ''],
  ])('is refused where it is %s, and harms nobody', async (_, answer) => {
    const { get, writer } = await hostileDaemon(answer);
    for (const received of [await get('/processes'), await get('/processes/x/attach', UPGRADE)]) {
      expect(statusesOf(received).length).toBe(1);
      expect(received.toLowerCase()).not.toContain('set-cookie');
      expect(received).not.toContain('101 Switching');
    }
    expect(statusesOf(await get('/processes'))).toEqual([503]);
    expect((await writer.get('/api/v1/sandboxes')).status).toBe(200);
  });

  it('breaks off where it is shorter than it says, and ends where it is longer', async () => {
    const short = await hostileDaemon('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort');
    const received = await short.get('/processes');
    expect(received.endsWith('short')).toBe(true);
    const long = await hostileDaemon(
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad',
    );
    expect((await long.get('/processes')).endsWith('\r\n\r\nok')).toBe(true);
  });

  it('begins a WebSocket only as one begins', async () => {
    const forged = await hostileDaemon(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: a=b\r\n\r\n',
    );
    expect(statusesOf(await forged.get('/processes/x/attach', UPGRADE))).toEqual([503]);
    const odd = await hostileDaemon(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${'A'.repeat(27)}=\r\nSet-Cookie: a=b\r\n\r\n`,
    );
    const received = await odd.get('/processes/x/attach', UPGRADE);
    expect(statusesOf(received)).toEqual([101]);
    expect(received.toLowerCase()).not.toContain('set-cookie');
  });
});
