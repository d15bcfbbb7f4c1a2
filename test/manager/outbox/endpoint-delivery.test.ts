import { expect, it } from 'vitest';
import { deliver } from '../../support/manager/delivering.ts';

it('one endpoint that is down is logged when its backoff begins and when it ends, without its path', async () => {
  let status = 503;
  const { clock, deleted, logged } = await deliver(() => status);
  for (let i = 0; i < 5; i++) await deleted({ webhook_url: 'http://consumer.invalid/a-secret?key=1' });
  await clock.advance(60_000);
  const changes = () => logged.filter(({ msg }) => String(msg).startsWith('the endpoint'));
  const endpoint = 'http://consumer.invalid';
  const backoff = { endpoint, failures: 3, status: 503, error: null, msg: 'the endpoint is in backoff' };
  expect(changes()).toMatchObject([backoff]);
  status = 204;
  await clock.advance(60_000);
  expect(changes()).toMatchObject([backoff, { endpoint, msg: 'the endpoint has recovered' }]);
  expect(JSON.stringify(logged)).not.toContain('a-secret');
});
