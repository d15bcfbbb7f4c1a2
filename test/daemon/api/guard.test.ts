import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { startDaemon, startDelivering } from '../../support/daemon/running-daemon.ts';
import { exchange } from '../../support/raw-socket.ts';
import { startSandboxd } from '../../support/sandboxd-program.ts';
import { scratchFolder } from '../../support/scratch.ts';

const PUBLISH = '/api/v1/webhook/publish';
/** Nobody listens there; and the daemon waits for nothing at its end. */
const DOWN = ['--webhook-url', 'http://127.0.0.1:9/', '--shutdown-grace-ms', '0'];
const STARTED = { shell: 'exec sleep 1000', process_id: 'p' };

interface Asked {
  scope?: string;
  body?: object;
}

function over(socketPath: string, method: string, path: string, { scope, body }: Asked = {}) {
  const headers = { host: 'localhost', ...(scope === undefined ? {} : { 'x-control-scope': scope }) };
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const request = httpRequest({ socketPath, method, path, agent: false, headers });
    request.once('error', reject);
    request.once('response', async (response) =>
      resolve({ status: response.statusCode ?? 0, text: await textOf(response) }),
    );
    if (body) request.setHeader('content-type', 'application/json');
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function withSocket(...args: string[]) {
  const socket = join(scratchFolder(), 'control.sock');
  const daemon = await startSandboxd(['--control-socket', socket, ...DOWN, ...args]);
  return { daemon, socket };
}

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

  it('serves the host of --host', async () => {
    const { call } = await startDaemon('--host', '127.0.0.1');
    expect((await call('GET', '/healthz', { headers: { host: '127.0.0.1' } })).status).toBe(200);
  });

  it('serves its own origin and refuses any other', async () => {
    const { publish, port } = await startDelivering();
    for (const origin of [`http://localhost:${port}`, `http://127.0.0.1:${port}`, `http://[::1]:${port}`]) {
      expect((await publish('{}', { origin })).status, origin).toBe(202);
    }
    const foreign = ['null', 'http://localhost', `https://localhost:${port}`, `http://example.test:${port}`];
    for (const origin of [...foreign, `http://localhost:${port}.example.test`, '', 'file://']) {
      expect((await publish('{}', { origin })).status, origin).toBe(403);
    }
  });

  it('refuses requests that a browser marks as cross-site', async () => {
    const { publish } = await startDelivering();
    for (const site of ['cross-site', ['same-origin', 'cross-site'], ['cross-site', 'none']])
      expect((await publish('{}', { 'sec-fetch-site': site })).status, String(site)).toBe(403);
    for (const site of ['same-origin', 'same-site', 'none']) {
      expect((await publish('{}', { 'sec-fetch-site': site })).status, site).toBe(202);
    }
  });

  it('reads every copy of a header that it decides by', async () => {
    const { call, publish, port, token } = await startDelivering();
    const own = `http://localhost:${port}`;
    expect((await publish('{}', { origin: [own, 'http://example.test'] as never })).status).toBe(403);
    const authorization = [`Bearer ${token}`, 'Bearer x'];
    for (const copies of [authorization, authorization.toReversed()])
      expect(
        (await call('GET', '/api/v1/sandbox', { headers: { authorization: copies as never } })).status,
      ).toBe(400);
  });

  it('answers no preflight and sets no CORS header', async () => {
    const { call, port } = await startDelivering();
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
  ])('requires the control token for %s %s', async (method, path) => {
    const { call, state_dir } = await startDaemon();
    for (const token of [null, 'x', '', '0'.repeat(64), `${'0'.repeat(64)} `]) {
      const answer = await call(method, path, { token });
      expect(answer.status, `${token}`).toBe(401);
      expect(answer.json.error.code).toBe('unauthorized');
    }
    expect(state_dir).toBeTruthy();
  });

  it.each(['/healthz', '/readyz', '/metrics'])('requires no token for %s', async (path) => {
    const { call } = await startDaemon();
    expect((await call('GET', path, { token: null })).status).toBe(200);
  });

  it('serves a request on the control socket within the scope that it names', async () => {
    const { socket } = await withSocket();
    const status = async (method: string, path: string, asked: Asked = {}) =>
      (await over(socket, method, path, asked)).status;
    expect(await status('POST', '/api/v1/processes', { scope: 'read', body: STARTED })).toBe(403);
    expect(await status('POST', '/api/v1/processes', { body: STARTED })).toBe(403);
    expect(await status('POST', '/api/v1/processes', { scope: 'write', body: STARTED })).toBe(201);
    expect(await status('GET', '/api/v1/processes', { scope: 'read' })).toBe(200);
    expect(await status('GET', '/api/v1/processes', { scope: 'read, manage' })).toBe(403);
    expect(await status('GET', '/api/v1/processes', { scope: 'anything' })).toBe(403);
    expect(await status('GET', '/api/v1/processes')).toBe(403);
    expect(await status('GET', '/api/v1/processes/p/attach', { scope: 'read' })).toBe(403);
    for (const scope of ['read', 'write']) {
      expect(await status('POST', '/api/v1/sandbox/pause', { scope })).toBe(403);
      expect(await status('PUT', '/api/v1/sandbox/env', { scope, body: { env: {} } })).toBe(403);
      expect(await status('POST', '/api/v1/sandbox/stop', { scope })).toBe(403);
    }
    expect(await status('PUT', '/api/v1/sandbox/env', { scope: 'manage', body: { env: {} } })).toBe(200);
    expect(await status('GET', '/healthz')).toBe(200);
    expect(await status('POST', '/api/v1/webhook/publish', { body: { payload: {} } })).toBe(202);
    expect(await status('GET', '/api/v1/nowhere')).toBe(404);
  });

  it('does not serve a request that hides behind another on the control socket', async () => {
    const { socket } = await withSocket();
    const body = JSON.stringify(STARTED);
    const hidden =
      'POST /api/v1/processes HTTP/1.1\r\nHost: localhost\r\nX-Control-Scope: manage\r\n' +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const attach =
      'GET /api/v1/processes/p/attach HTTP/1.1\r\nHost: localhost\r\nX-Control-Scope: manage\r\n';
    const upgrade = `${attach}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    const head = 'GET /api/v1/processes HTTP/1.1\r\nHost: localhost\r\nX-Control-Scope: read\r\n';
    await exchange({ path: socket }, `${head}\r\n${hidden}`);
    await exchange({ path: socket }, `${head}\r\n${upgrade}`);
    for (const framing of [`Content-Length: ${hidden.length}\r\n`, 'Transfer-Encoding: chunked\r\n']) {
      const is_chunked = framing.startsWith('T');
      const content = is_chunked ? `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n` : hidden;
      for (const method of ['GET', 'DELETE']) {
        const answer = await exchange(
          { path: socket },
          `${head.replace('GET', method)}${framing}\r\n${content}`,
        );
        expect(answer).toMatch(/^HTTP\/1\.1 400 /);
        expect(answer).toMatch(/connection: close/i);
        expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
      }
    }
    const { text } = await over(socket, 'GET', '/api/v1/processes', { scope: 'read' });
    expect(JSON.parse(text).data.processes).toEqual([]);
  });
});
