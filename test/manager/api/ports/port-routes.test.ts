import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { portIn, serverTarget } from '../../../../src/manager/api/ports/port-routes.ts';
import { eventually } from '../../../support/eventually.ts';
import { DaemonRuntime } from '../../../support/manager/daemon-runtime.ts';
import { startManager } from '../../../support/manager/running-manager.ts';
import { scratchFolder } from '../../../support/scratch.ts';

/** A claimed sandbox; the servers of the test are its own. */
async function scene(config: object = {}) {
  const runtime = new DaemonRuntime();
  const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, { runtime });
  const writer = await running.client('team_1', 'sandboxes:write');
  const id = await writer.claim(config);
  const path = `/api/v1/sandboxes/${id}`;
  const { hostname, port } = new URL(running.manager.url);
  const send = (method: string, target: string, headers: Record<string, string> = {}) =>
    httpRequest({
      ...{ hostname, port, method, path: target },
      headers: { authorization: `Bearer ${writer.token}`, ...headers },
    });
  const ask = async (method: string, target: string, headers: Record<string, string> = {}, body?: Buffer) => {
    const request = send(method, target, headers).end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, text: await text(response) };
  };
  return { ...running, runtime, writer, id, path, send, ask };
}

async function serve(listener: RequestListener, host = '127.0.0.1') {
  const server = createServer(listener).listen(0, host);
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, port: (server.address() as AddressInfo).port };
}

describe('an HTTP server in a sandbox', () => {
  it('is reached with any method, its path and query as they were sent, and told whose request it is', async () => {
    const { ask, path, manager } = await scene();
    const { port } = await serve(async (request, response) => {
      const { method, url, headers } = request;
      response.end(JSON.stringify({ method, url, headers, body: await text(request) }));
    });
    const sent = {
      cookie: 'session=secret',
      forwarded: 'for=1.2.3.4',
      'x-forwarded-for': '1.2.3.4',
      'x-forwarded-prefix': '/forged',
      x_forwarded_for: '1.2.3.4',
      connection: 'close, x-hop',
      'x-hop': '1',
      'x-own': 'kept',
      'x-control-scope': 'manage',
      te: 'trailers',
      'content-type': 'text/any',
      'content-length': '4',
    };
    const prefix = `${path}/ports/${port}`;
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY', 'TRACE']) {
      const { status, text: seen } = await ask(method, `${prefix}/a%2fb/?q=%zz&r`, sent, Buffer.from('body'));
      const { headers, ...rest } = JSON.parse(seen);
      expect([status, rest]).toEqual([200, { method, url: '/a%2fb/?q=%zz&r', body: 'body' }]);
      expect(headers).toMatchObject({
        host: `localhost:${port}`,
        'x-own': 'kept',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-host': new URL(manager.url).host,
        'x-forwarded-prefix': prefix,
        'x-forwarded-proto': 'http',
      });
      const taken_out = [
        'authorization',
        'cookie',
        'forwarded',
        'x-hop',
        'te',
        'x-control-scope',
        'x_forwarded_for',
      ];
      expect(taken_out.filter((name) => name in headers)).toEqual([]);
    }
    expect(JSON.parse((await ask('GET', prefix)).text)).toMatchObject({ url: '/', body: '' });
    expect((await ask('HEAD', `${prefix}/`)).text).toBe('');
  });

  it('is reached on the other loopback address, too', async () => {
    const { ask, path } = await scene();
    const { port } = await serve((_, response) => response.end('six'), '::1');
    expect((await ask('GET', `${path}/ports/${port}/`)).text).toBe('six');
  });

  it('answers with any status and headers, but with nothing that would hold for the host of the manager', async () => {
    const { ask, path } = await scene();
    const { port } = await serve((_, response) => {
      response.writeHead(418, {
        'Content-Type': 'text/html',
        'X-Own': 'kept',
        'Content-Security-Policy': "default-src 'self'",
        'Set-Cookie': ['a=b', 'c=d'],
        'Clear-Site-Data': '"*"',
        'Strict-Transport-Security': 'max-age=9',
        'Alt-Svc': 'h3=":1"',
        'Set-Login': 'logged-in',
        'Service-Worker-Allowed': '/',
        'Access-Control-Allow-Origin': '*',
        'WWW-Authenticate': 'Basic realm="manager"',
        Refresh: '0;url=/x',
        'X-Request-Id': 'forged',
        RateLimit: 'forged',
        Connection: 'close, x-hop',
        'X-Hop': '1',
        Location: '/elsewhere',
        Trailer: 'Set-Cookie',
      });
      response.addTrailers({ 'Set-Cookie': 'e=f' });
      response.end('<b>page</b>');
    });
    const answer = await ask('GET', `${path}/ports/${port}/`);
    expect([answer.status, answer.text]).toEqual([418, '<b>page</b>']);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/html',
      'x-own': 'kept',
      location: `${path}/ports/${port}/elsewhere`,
      'x-content-type-options': 'nosniff',
    });
    const policy = answer.headers['content-security-policy'] ?? '';
    expect(policy).toMatch(/^default-src 'self', sandbox allow-scripts /);
    expect(policy).not.toContain('allow-same-origin');
    const text_of_headers = JSON.stringify(answer.headers);
    for (const name of [
      'set-cookie',
      'set-login',
      'clear-site',
      'strict-',
      'alt-svc',
      'service-worker',
      'access-control',
    ])
      expect(text_of_headers).not.toContain(name);
    for (const name of ['www-authenticate', 'refresh', 'forged', 'x-hop', 'trailer'])
      expect(text_of_headers).not.toContain(name);
  });

  it('streams both ways at the same time, and takes no more than its reader', async () => {
    const { send, path } = await scene();
    let written = 0;
    const chunk = Buffer.alloc(1024 * 1024);
    const { port } = await serve((request, response) => {
      if (request.method === 'POST') return void request.pipe(response);
      const more = () => {
        do written += chunk.length;
        while (response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    const echo = send('POST', `${path}/ports/${port}/`);
    const hash = createHash('sha256');
    echo.write('first');
    const [back] = (await once(echo, 'response')) as [IncomingMessage];
    const pieces = back[Symbol.asyncIterator]();
    expect(String((await pieces.next()).value)).toBe('first');
    const rest = randomBytes(20_000_000);
    echo.end(rest);
    for await (const piece of { [Symbol.asyncIterator]: () => pieces }) hash.update(piece);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(rest).digest('hex'));

    const flood = send('GET', `${path}/ports/${port}/`).end();
    const [unread] = (await once(flood, 'response')) as [IncomingMessage];
    unread.pause();
    let before = -1;
    await eventually(
      () => {
        const is_still = written === before;
        before = written;
        expect(is_still).toBe(true);
      },
      { timeout: 60_000, interval: 200 },
    );
    expect(written).toBeLessThan(100_000_000);
    unread.destroy();
  });

  it('loses its connection when the caller goes, before and during the answer', async () => {
    const { send, path } = await scene();
    const { server, port } = await serve((request, response) => {
      if (request.url === '/begun') response.write('x');
    });
    const open = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    for (const target of ['/silent', '/begun']) {
      const request = send('GET', `${path}/ports/${port}${target}`).end();
      request.on('error', () => {});
      if (target === '/begun') await once(request, 'response');
      await eventually(async () => expect(await open()).toBe(1));
      request.destroy();
      await eventually(async () => expect(await open()).toBe(0));
    }
  });

  it('talks over WebSockets, with the protocol and the extensions that both agree on', async () => {
    const { writer, manager, path } = await scene();
    const { server, port } = await serve((_, response) => response.writeHead(426).end('plain'));
    const sockets = new WebSocketServer({ server, path: '/echo', perMessageDeflate: true });
    onTestFinished(() => sockets.close());
    sockets.on('connection', (socket) =>
      socket.on('message', (data, is_binary) => socket.send(data, { binary: is_binary })),
    );
    const url = `${manager.url.replace('http', 'ws')}${path}/ports/${port}`;
    const headers = { authorization: `Bearer ${writer.token}` };
    const socket = new WebSocket(`${url}/echo`, ['v2', 'v1'], { headers });
    await once(socket, 'open');
    expect([socket.protocol, socket.extensions]).toEqual(['v2', 'permessage-deflate']);
    const large = randomBytes(3_000_000);
    socket.send(large);
    expect((await once(socket, 'message'))[0].equals(large)).toBe(true);
    for (const client of sockets.clients) client.close(4001, 'enough');
    expect((await once(socket, 'close')).map(String)).toEqual(['4001', 'enough']);
    const refused = new WebSocket(`${url}/other`, { headers });
    const [, response] = await once(refused, 'unexpected-response');
    expect(response.statusCode).toBe(400);
  });
});

describe('a port', () => {
  it.each(['0', '65536', 'http', '80x'])('%s is none', async (port) => {
    const { writer, path } = await scene();
    const { status, error } = await writer.get(`${path}/ports/${port}/`);
    expect([status, error?.code, error?.details]).toEqual([400, 'invalid_request', { field: 'port' }]);
  });

  it("that nobody listens on is 502, and the daemon's own is 403", async () => {
    const { writer, path } = await scene();
    const { server, port } = await serve(() => {});
    server.close();
    const { status, error } = await writer.get(`${path}/ports/${port}/`);
    expect([status, error]).toMatchObject([
      502,
      { code: 'bad_gateway', message: `Nobody listens on port ${port} of the sandbox.`, details: { port } },
    ]);
    const { data } = await writer.post(`${path}/processes?wait_ms=20000`, { shell: 'echo $SANDBOXD_URL' });
    const own = new URL(data.output.stdout.trim()).port;
    const refused = await writer.get(`${path}/ports/${own}/api/v1/webhook/publish`);
    expect([refused.status, refused.error?.code]).toEqual([403, 'forbidden']);
  });

  it("of another team's sandbox is not found, and readers may not use one", async () => {
    const { client, path, ask } = await scene();
    const { port } = await serve((_, response) => response.end('mine'));
    const stranger = await client('team_2', 'sandboxes:write');
    const reader = await client('team_1', 'sandboxes:read');
    expect((await stranger.get(`${path}/ports/${port}/`)).status).toBe(404);
    expect((await reader.get(`${path}/ports/${port}/`)).status).toBe(403);
    const anonymous = await ask('OPTIONS', `${path}/ports/${port}/`, { authorization: '' });
    expect(anonymous.status).toBe(401);
  });

  it('of a paused sandbox is refused, or resumes it', async () => {
    const { writer, path, ask } = await scene();
    const { port } = await serve((_, response) => response.end('awake'));
    await writer.post(`${path}/pause`);
    expect((await writer.get(`${path}/ports/${port}/`)).error).toMatchObject({
      code: 'conflict',
      message: 'The sandbox is paused.',
    });
    await writer.call('PUT', path, { config: { auto_resume: true } });
    expect((await ask('GET', `${path}/ports/${port}/`)).text).toBe('awake');
  });

  it("that cannot be told from the machine's is not reached", async () => {
    const { writer, path, runtime } = await scene();
    const { port } = await serve((_, response) => response.end('a service of the machine'));
    runtime.hasOwnPorts = () => false;
    const { error } = await writer.get(`${path}/ports/${port}/`);
    expect(error?.code).toBe('conflict');
    expect(error?.message).toContain('no network of its own');
  });
});

const PREFIX = '/api/v1/sandboxes/sbx_1/ports/8000';

it.each([
  [PREFIX, '/'],
  [`${PREFIX}/`, '/'],
  [`${PREFIX}?a=b`, '/?a=b'],
  [`${PREFIX}/a%2fb/../c;d=1//?x=%zz&y#z`, '/a%2fb/../c;d=1//?x=%zz&y'],
  [`http://manager.example:8080${PREFIX}/x?http://y/z`, '/x?http://y/z'],
  [`${PREFIX}//elsewhere.example/x`, '//elsewhere.example/x'],
])('the target of %s at the server is %s', (url, target) => {
  expect(serverTarget(url)).toBe(target);
});

it.each(['0', '65536', '080', '80a', '-1', '1e3', ' 80', '99999'])('%j is no port', (text) => {
  expect(() => portIn(text)).toThrow('port: must be a whole number from 1 to 65535');
});

it('ports are numbers from 1 to 65535', () => {
  expect(['1', '65535'].map(portIn)).toEqual([1, 65_535]);
});
