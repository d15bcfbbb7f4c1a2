import { describe, expect, it } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { type Running, startDaemon } from '../support/daemon/running-daemon.ts';

async function endpointOf(daemon: Running): Promise<unknown> {
  return (await daemon.call('GET', '/api/v1/sandbox')).json.data.endpoint;
}

describe('the view of a sandbox', () => {
  it('has no endpoint without a webhook', async () => {
    expect(await endpointOf(await startDaemon())).toBeNull();
  });

  it('has an endpoint with a webhook', async () => {
    const { url } = await startConsumer();
    expect(await endpointOf(await startDaemon('--webhook-url', url))).toEqual({
      healthy: true,
      next_probe_at: null,
    });
  });

  it('has no endpoint before its init, and one after an init with a webhook', async () => {
    const { url } = await startConsumer();
    const daemon = await startDaemon('--await-init');
    expect(await endpointOf(daemon)).toBeNull();
    const body = JSON.stringify({ sandbox_id: 'sbx_1', team_id: 'team_1', webhook: { url } });
    expect((await daemon.call('POST', '/api/v1/sandbox/init', { body })).status).toBe(200);
    expect(await endpointOf(daemon)).toEqual({ healthy: true, next_probe_at: null });
  });
});
