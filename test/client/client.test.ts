import { join } from 'node:path';
import { beforeEach, describe, expect, expectTypeOf, it } from 'vitest';
import {
  createDaemonClient,
  createManagerClient,
  type ManagerClient,
  SandboxdError,
} from '../../src/client/client.ts';
import { startDelivering } from '../support/daemon/running-daemon.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

describe('a client of the manager', () => {
  let manager: ManagerClient;

  beforeEach(async () => {
    const { client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
    const { url, token } = await client('team-a', 'sandboxes:write', 'usage:read');
    manager = createManagerClient({ url, token: async () => token });
  });

  it('claims, reads, lists and deletes, with what the compiler knows of each', async () => {
    const config = { ttl: 3600, metadata: { project: 'search' } };
    const { sandbox_id, status } = await manager.POST('/api/v1/sandboxes', { body: { config } });
    expectTypeOf(sandbox_id).toEqualTypeOf<string>();
    expect(status).toBe('running');
    const path = { sandbox_id };
    const { metadata, failure } = await manager.GET('/api/v1/sandboxes/{sandbox_id}', { path });
    expectTypeOf(failure).toEqualTypeOf<'runtime_lost' | null>();
    expect(metadata).toEqual({ project: 'search' });
    const query = { metadata: ['project:search'], limit: 10 };
    const { sandboxes, has_more } = await manager.GET('/api/v1/sandboxes', { query });
    expect([sandboxes.map(({ id }) => id), has_more]).toEqual([[sandbox_id], false]);
    await manager.DELETE('/api/v1/sandboxes/{sandbox_id}', { path });
    expect((await manager.GET('/api/v1/sandboxes')).count).toBe(0);
    // @ts-expect-error the path has a parameter
    const without_path = () => manager.GET('/api/v1/sandboxes/{sandbox_id}');
    // @ts-expect-error such a route does not exist
    const without_route = () => manager.GET('/api/v1/sandbox');
    // @ts-expect-error the body is checked
    const wrong_body = () => manager.POST('/api/v1/sandboxes', { body: { config: { ttl: 'long' } } });
    for (const call of [without_path, without_route, wrong_body]) {
      await expect(call).rejects.toBeInstanceOf(SandboxdError);
    }
  });

  it('throws errors of one class, with code, status, details and the id of the request', async () => {
    const error = await manager
      .POST('/api/v1/sandboxes', { body: { config: { ttl: -1 } }, headers: { 'X-Request-Id': 'r-1' } })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SandboxdError);
    expect(error).toMatchObject({
      code: 'invalid_request',
      status: 400,
      details: { field: 'config.ttl' },
      request_id: expect.stringMatching(/./),
      message: expect.stringContaining('config.ttl'),
    });
    const refused = manager.GET('/api/v1/quotas');
    await expect(refused).rejects.toMatchObject({ code: 'forbidden', details: { scope: 'quota:read' } });
  });

  it('sends no id that would make another route of the one that is called', async () => {
    const { sandbox_id } = await manager.POST('/api/v1/sandboxes');
    const route = '/api/v1/sandboxes/{sandbox_id}/processes/{process_id}';
    for (const process_id of ['..', '.', '']) {
      const call = manager.DELETE(route, { path: { sandbox_id, process_id } });
      await expect(call).rejects.toMatchObject({ code: 'invalid_request', details: { field: 'process_id' } });
    }
    const other = manager.DELETE(route, { path: { sandbox_id, process_id: '../' } });
    await expect(other).rejects.toMatchObject({ code: 'not_found' });
    const { status } = await manager.GET('/api/v1/sandboxes/{sandbox_id}', { path: { sandbox_id } });
    expect(status).toBe('running');
  });

  it('gives up an answer that does not end', async () => {
    const chunk = new TextEncoder().encode(' '.repeat(2 ** 20));
    for (const status of [200, 404]) {
      const body = () => new ReadableStream({ pull: (controller) => controller.enqueue(chunk) });
      const headers = { 'content-type': 'application/json' };
      const fetch = async () => new Response(body(), { status, headers });
      const hostile = createManagerClient({ url: 'http://hostile', fetch });
      await expect(hostile.GET('/healthz')).rejects.toMatchObject({ code: 'bad_answer', status });
    }
  });

  it('tells a server that is away, one that is another program, and a caller who gave up apart', async () => {
    const nobody = createManagerClient({ url: 'http://127.0.0.1:9', retry: { retries: 0 } });
    await expect(nobody.GET('/healthz')).rejects.toMatchObject({ code: 'unreachable', status: 0 });
    const fetch = async () => new Response('<h1>404</h1>', { status: 404 });
    const other = createManagerClient({ url: 'http://other', fetch });
    await expect(other.GET('/healthz')).rejects.toMatchObject({ code: 'bad_answer', status: 404 });
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    await expect(manager.GET('/healthz', { signal })).rejects.toBe(reason);
  });
});

describe('a client of the daemon', () => {
  it('publishes, follows the delivery, and gives other answers than JSON as they came', async () => {
    const { port, token, consumer } = await startDelivering();
    const daemon = createDaemonClient({ url: `http://127.0.0.1:${port}`, token });
    const { event_id } = await daemon.POST('/api/v1/webhook/publish', { body: { payload: { step: 1 } } });
    await consumer.arrival('agent.event');
    const delivery = await daemon.GET('/api/v1/webhook/deliveries/{event_id}', { path: { event_id } });
    expect(JSON.parse(delivery.body)).toMatchObject({ event_id, payload: { step: 1 } });
    const metrics = await daemon.GET('/metrics');
    expectTypeOf(metrics).toEqualTypeOf<Response>();
    expect(await metrics.text()).toContain('sandboxd_outbox_records');
  });
});
