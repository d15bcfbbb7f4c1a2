import { once } from 'node:events';
import { statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpApp, success } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { LazyApp } from '../../../src/daemon/api/local-api.ts';
import { freePort } from '../../support/free-port.ts';
import { launch, type SandboxdProgram } from '../../support/sandboxd-program.ts';

/** Nobody listens there; and the daemon waits for nothing at its end. */
const DOWN = ['--webhook-url', 'http://127.0.0.1:9/', '--shutdown-grace-ms', '0'];
const STARTS = 12;

/** Whether the token is in its file, which stands empty for a moment before it is written. */
function written(daemon: SandboxdProgram): boolean {
  const stat = statSync(join(daemon.state_dir, 'control-token'), { throwIfNoEntry: false });
  return stat !== undefined && stat.size > 0;
}

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

describe('the local API', () => {
  it('gives control to nobody while the daemon starts, and then to the token', async () => {
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
          const authorization = written(daemon) ? `Bearer ${daemon.token}` : '';
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
});

it('an application that cannot be loaded is an error for the request, and the next request loads it', async () => {
  let loads = 0;
  const app = new LazyApp(async () => {
    loads += 1;
    if (loads === 1) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    const made = createHttpApp(createLog('silent'));
    made.get('/healthz', async () => success({ alive: true }));
    await made.ready();
    return made;
  });
  const server = createServer(app.routing).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/healthz`;
  const refused = await fetch(url);
  expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([
    500,
    'internal_error',
  ]);
  expect((await fetch(url)).status).toBe(200);
  expect((await fetch(url)).status).toBe(200);
  expect(loads).toBe(2);
});
