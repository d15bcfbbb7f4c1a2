import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createHttpApp, success } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { LazyApp } from '../../../src/daemon/api/lazy-app.ts';

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
