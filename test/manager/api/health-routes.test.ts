import { expect, it, onTestFinished } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { MANAGER_ROUTES } from '../../../src/contract/routes/manager.ts';
import { healthHandlers } from '../../../src/manager/api/health-routes.ts';
import { unavailable } from '../../../src/manager/database/database-errors.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { serveSome } from '../../support/serve-some.ts';

async function answers(notReady: () => Promise<string | null>) {
  const app = createHttpApp(createLog('silent'));
  onTestFinished(() => app.close());
  const readiness = { notReady, facts: () => ({ rate_authority: 'process' }) };
  const metrics = { text: async () => 'a_metric 1\n' };
  await serveSome(app, MANAGER_ROUTES, healthHandlers(readiness, metrics as never));
  await app.ready();
  return async (url: string) => {
    const { statusCode, headers, body } = await app.inject({ url, headers: { host: 'localhost' } });
    return { status: statusCode, type: headers['content-type'], body };
  };
}

it('a manager that is ready says so, with what holds', async () => {
  const get = await answers(async () => null);
  const ready = await get('/readyz');
  expect([ready.status, JSON.parse(ready.body)]).toEqual([
    200,
    { success: true, data: { ready: true, rate_authority: 'process' } },
  ]);
});

it('a manager that is not ready says why, and lives', async () => {
  const get = await answers(async () => 'Abandoned operations are being resolved.');
  const ready = await get('/readyz');
  expect([ready.status, JSON.parse(ready.body).error]).toEqual([
    503,
    { code: 'unavailable', message: 'Abandoned operations are being resolved.' },
  ]);
  expect(JSON.parse((await get('/healthz')).body).data).toEqual({ alive: true });
});

it('a manager whose database cannot be used is not ready, and does not say more', async () => {
  const get = await answers(() => Promise.reject(unavailable(new Error('password of the database'))));
  const { status, body } = await get('/readyz');
  expect([status, JSON.parse(body).error.code]).toEqual([503, 'unavailable']);
  expect(body).not.toContain('password');
});

it('the metrics are text', async () => {
  const get = await answers(async () => null);
  expect(await get('/metrics')).toEqual({
    status: 200,
    type: 'text/plain; version=0.0.4; charset=utf-8',
    body: 'a_metric 1\n',
  });
});

it('a manager names the walls and limits that its runtime lacks, and how its network works', async () => {
  const database = `sqlite:${scratchFolder()}/manager.db`;
  const runtime = new NoRuntime();
  runtime.limitations = () => ['system calls of sandboxes are not filtered'];
  const client = await (await startManager(database, { runtime })).client('team_1', 'sandboxes:read');
  expect((await client.get('/readyz')).data).toMatchObject({
    ready: true,
    runtime_limitations: ['system calls of sandboxes are not filtered'],
    network: { mode: 'host-unmetered', reason: 'no sandboxes run here', block_all: null },
  });
});

it('a manager says under "degraded" that an endpoint is in backoff', async () => {
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const team = await client('team_1', 'sandboxes:write');
  expect((await team.get('/readyz')).data.degraded).toBeUndefined();
  const url = `http://127.0.0.1:${await freePort()}/hook`;
  const ids = await Promise.all(Array.from({ length: 3 }, () => team.claim({ webhook: { url } })));
  await Promise.all(ids.map((id) => team.call('DELETE', `/api/v1/sandboxes/${id}`)));
  await eventually(async () => {
    const { status, data } = await team.get('/readyz');
    const degraded = ['1 webhook endpoint is in backoff: the log says which, and why'];
    expect([status, data.degraded]).toEqual([200, degraded]);
  });
});

it('a manager says under "degraded" that its metered sandboxes have no network, and no more once they have', async () => {
  const runtime = new ScriptedRuntime();
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`, { runtime });
  const team = await client('team_1', 'sandboxes:read');
  const shown = async () => {
    const { network, degraded } = (await team.get('/readyz')).data;
    return { network, degraded };
  };
  for (const [network, degraded] of [
    [
      { mode: 'metered', reason: 'the meter is restarting', block_all: 'network_namespace' },
      ['metered sandboxes have no network: the meter is restarting'],
    ],
    [{ mode: 'metered', reason: null, block_all: 'network_namespace' }, undefined],
    [{ mode: 'host-unmetered', reason: 'not root', block_all: null }, undefined],
  ] as const) {
    runtime.networks.mode = network;
    expect(await shown()).toEqual({ network, degraded });
  }
});
