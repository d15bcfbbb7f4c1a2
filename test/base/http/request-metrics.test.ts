import { expect, it } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { RequestMetrics } from '../../../src/base/http/request-metrics.ts';
import { createLog } from '../../../src/base/log.ts';
import { ApiError } from '../../../src/contract/errors.ts';

it('requests are counted by route, not by path, and by status, also where there is no route', async () => {
  const app = createHttpApp(createLog('silent'));
  const metrics = new RequestMetrics();
  metrics.count(app);
  app.get('/things/:id', async (request) => {
    if ((request.params as { id: string }).id === 'none') throw new ApiError('not_found');
    return { data: 1 };
  });
  await app.ready();
  for (const url of ['/things/1', '/things/2', '/things/none', '/made/up', '/made/up/too'])
    await app.inject(url);
  await app.inject({ method: 'DELETE', url: '/things/1' });
  const [requests, seconds] = metrics.metrics();
  expect(await requests?.samples()).toEqual([
    { labels: { route: '/things/:id', status: '200' }, value: 2 },
    { labels: { route: '/things/:id', status: '404' }, value: 1 },
    { labels: { route: 'none', status: '404' }, value: 2 },
    { labels: { route: 'none', status: '405' }, value: 1 },
  ]);
  const count = (await seconds?.samples())?.at(-1);
  expect(count).toMatchObject({ metricName: 'http_request_duration_seconds_count', value: 6 });
});
