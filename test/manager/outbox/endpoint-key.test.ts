import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { endpointKey, endpointOf } from '../../../src/manager/outbox/endpoint-key.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';

describeOnStores('endpoints of the outbox', (fresh) => {
  it('may have URLs of any length that a claim takes: their sandboxes can be deleted', async () => {
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write', 'webhooks:read');
    const url = `http://127.0.0.1:9/${randomBytes(1_850).toString('hex')}`;
    const id = await team.claim({ webhook: { url } });
    expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(202);
    const { data } = await team.get('/api/v1/webhooks/deliveries');
    expect(data.deliveries).toMatchObject([{ sandbox_id: id, state: 'pending' }]);
  });
});

it('names a webhook URL that is too long', async () => {
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const team = await client('team_1', 'sandboxes:write');
  for (const path of ['a'.repeat(4_096), 'é'.repeat(1_500)]) {
    const { status, error } = await team.post(SANDBOXES, {
      config: { webhook: { url: `http://u.example/${path}` } },
    });
    expect([status, error?.details?.field]).toEqual([400, 'config.webhook.url']);
  }
});

it('counts an endpoint by scheme, host, port and path', () => {
  expect(endpointOf('https://u.example:443/a/b?c=d#e')).toBe(endpointKey('https://u.example/a/b'));
  expect(endpointOf('http://u.example:8080')).toBe(endpointKey('http://u.example:8080/'));
});
