import { existsSync, readFileSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, it, vi } from 'vitest';
import { ControlToken } from '../../src/daemon/control-token.ts';
import { requestDaemon } from '../../src/runtime/control-client.ts';
import { freePort } from '../support/free-port.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { exchange } from '../support/raw-socket.ts';
import { launch, type SandboxdProgram, startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

/** Nobody listens there; and nothing is waited for at the end. */
const DOWN = ['--webhook-url', 'http://127.0.0.1:9/', '--shutdown-grace-ms', '0'];
const STARTS = 12;

/** Asks without a token from before the first connection is taken until the daemon is ready; gives the answers. */
async function askThroughTheStart(daemon: SandboxdProgram, port: number): Promise<Set<number>> {
  const statuses = new Set<number>();
  while (!daemon.stderr.includes('"ready"')) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/sandbox`).catch(() => null);
    if (!answer) continue;
    statuses.add(answer.status);
    await answer.arrayBuffer();
  }
  return statuses;
}

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

/** Removes the outbox's files and publishes until they are back. */
async function restored(daemon: SandboxdProgram): Promise<void> {
  for (const end of ['', '-wal', '-shm']) rmSync(join(daemon.state_dir, `outbox.db${end}`), { force: true });
  await vi.waitFor(async () => {
    await daemon.publish('{}');
    expect(existsSync(join(daemon.state_dir, 'outbox.db'))).toBe(true);
  });
}

const STARTED = { shell: 'exec sleep 1000', process_id: 'p' };

describe('control of the daemon', () => {
  it('is open to nobody while the daemon starts, and to the token afterwards', async () => {
    const starts = Array.from({ length: STARTS }, async () => {
      const port = await freePort();
      const daemon = launch(['--port', String(port)]);
      const statuses = await askThroughTheStart(daemon, port);
      expect([...statuses].filter((status) => status !== 401 && status !== 503)).toEqual([]);
      expect((await fetch(`${daemon.url}/api/v1/sandbox`)).status).toBe(401);
      expect((await daemon.call('GET', '/api/v1/sandbox')).status).toBe(200);
      await daemon.end('SIGTERM');
    });
    await Promise.all(starts);
  }, 120_000);

  it('answers during the start as afterwards, or 503 with Retry-After', async () => {
    const starts = Array.from({ length: STARTS }, async () => {
      const port = await freePort();
      const daemon = launch(['--port', String(port), ...DOWN]);
      const odd: string[] = [];
      const ask = async (path: string, body: string, expected: number) => {
        while (!daemon.stderr.includes('"ready"')) {
          const authorization = existsSync(join(daemon.state_dir, 'control-token'))
            ? `Bearer ${daemon.token}`
            : '';
          const headers = { 'content-type': 'application/json', authorization };
          const url = `http://127.0.0.1:${port}/api/v1${path}`;
          const answer = await fetch(url, { method: 'POST', headers, body }).catch(() => null);
          if (!answer) continue;
          const text = await answer.text();
          const is_honest = answer.status === 503 && answer.headers.get('retry-after') === '1';
          // The token may be younger than the question.
          const is_early = answer.status === 401 && authorization === '';
          if (answer.status !== expected && !is_honest && !is_early)
            odd.push(`${path} ${answer.status} ${text}`);
        }
      };
      await Promise.all([
        ask('/webhook/publish', '{"payload":{}}', 202),
        ask('/processes', '{"command":["true"]}', 201),
      ]);
      expect(odd).toEqual([]);
    });
    await Promise.all(starts);
  }, 120_000);

  it('needs the scope that a request on the control socket names', async () => {
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

  it('is not reached by a request that hides behind another on the control socket', async () => {
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

  it('is served on the control socket alone after an init over it', async () => {
    const socket = join(scratchFolder(), 'control.sock');
    const token_file = join(scratchFolder(), 'token');
    const daemon = launch([
      ...['--control-socket', socket, '--control-token-file', token_file, '--await-init'],
      ...['--shutdown-grace-ms', '0'],
    ]);
    await daemon.logged('listening');
    const authorization = `Bearer ${readFileSync(token_file, 'utf8').trim()}`;
    const withToken = async () =>
      (await fetch(`${daemon.url}/api/v1/sandbox`, { headers: { authorization } })).status;
    expect(await withToken()).toBe(200);
    const body = { sandbox_id: 'sbx_1', team_id: 't', webhook: { url: 'http://127.0.0.1:9/' } };
    const init = await requestDaemon(socket, {
      method: 'POST',
      path: '/sandbox/init',
      body,
      within_ms: 20_000,
    });
    expect(init).toMatchObject({ status: 200 });
    expect(await withToken()).toBe(401);
    expect(
      (await fetch(`${daemon.url}/api/v1/sandbox`, { headers: { authorization: 'Bearer ' } })).status,
    ).toBe(401);
    await restored(daemon);
    expect(existsSync(token_file)).toBe(false);
    expect(await requestDaemon(socket, { method: 'GET', path: '/sandbox', within_ms: 20_000 })).toMatchObject(
      {
        status: 200,
      },
    );
  });

  it('comes back with the outbox to a file that was removed with it, and to no other', async () => {
    const together = await startSandboxd(DOWN);
    rmSync(join(together.state_dir, 'control-token'));
    await restored(together);
    expect(existsSync(join(together.state_dir, 'control-token'))).toBe(true);
    expect((await together.call('GET', '/api/v1/sandbox')).status).toBe(200);
    const elsewhere = join(scratchFolder(), 'token');
    const outside = await startSandboxd([...DOWN, '--control-token-file', elsewhere]);
    rmSync(elsewhere);
    await restored(outside);
    expect(existsSync(elsewhere)).toBe(false);
  });

  it('stays away where its file was taken away before', async () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const path = join(state_dir, 'control-token');
    const token = new ControlToken(path, state_dir, clock);
    expect(token.matches('')).toBe(false);
    token.read();
    const text = readFileSync(path, 'utf8').trim();
    rmSync(path);
    token.checkFile();
    await clock.advance(500);
    token.restore();
    expect(readFileSync(path, 'utf8').trim()).toBe(text);
    rmSync(path);
    token.checkFile();
    await clock.advance(60_000);
    token.restore();
    expect(existsSync(path)).toBe(false);
    expect(token.matches(text)).toBe(true);
    token.forget();
    for (const given of ['', text]) expect(token.matches(given)).toBe(false);
    token.renew();
    expect(existsSync(path)).toBe(false);
  });
});
