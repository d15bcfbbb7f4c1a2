import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VERSION } from '../../../src/base/version.ts';
import { FEATURES } from '../../../src/contract/versions.ts';
import { requestDaemon } from '../../../src/runtime/control-client.ts';
import { requireFeature } from '../../../src/runtime/daemon-requests.ts';
import { type Consumer, startConsumer } from '../../support/consumer.ts';
import { startDaemon, startDelivering } from '../../support/daemon/running-daemon.ts';
import { launch } from '../../support/sandboxd-program.ts';
import { scratchFolder } from '../../support/scratch.ts';

const PUBLISH = '/api/v1/webhook/publish';

/** Initialises a daemon with this webhook; resolves with the answer, and how to read its first attempt. */
async function initialised(webhook: object): Promise<{ init: unknown; first: () => Promise<unknown> }> {
  const socket = join(scratchFolder(), 'control.sock');
  const daemon = launch(['--await-init', '--control-socket', socket]);
  await daemon.logged('listening');
  const body = { sandbox_id: 'sbx_1', team_id: 't', webhook };
  const init = await requestDaemon(socket, {
    method: 'POST',
    path: '/sandbox/init',
    body,
    within_ms: 20_000,
  });
  const get = async (path: string) => {
    const answer = await requestDaemon(socket, { method: 'GET', path, within_ms: 20_000 });
    return (answer.outcome === 'answered' ? answer.data : {}) as Record<string, object[]>;
  };
  /** The result of the first attempt at the first event. */
  const first = async () => {
    const [delivery] = (await get('/webhook/deliveries')).deliveries as { event_id: string }[];
    return delivery && (await get(`/webhook/deliveries/${delivery.event_id}`)).attempts?.[0];
  };
  return { init, first };
}

const at = (consumer: Consumer, host: string) => `http://${host}:${new URL(consumer.url).port}/`;
const BLOCKED = { attempt: 1, error: 'blocked', status: null };

describe('an init with webhook.allow_cidrs', () => {
  it.each(['127.0.0.1', 'localhost', 'any.localhost.', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '0.0.0.0'])(
    'keeps deliveries from %s, which is this machine',
    async (host) => {
      const consumer = await startConsumer();
      const { first } = await initialised({ url: at(consumer, host), allow_cidrs: ['10.0.0.0/8'] });
      await expect.poll(first, { timeout: 60_000 }).toMatchObject(BLOCKED);
      expect(consumer.deliveries).toEqual([]);
    },
  );

  it('permits the listed ranges, and any address when it is absent', async () => {
    const consumer = await startConsumer();
    for (const given of [{ allow_cidrs: ['127.0.0.0/8', 'fd00::/8'] }, {}]) {
      const { first } = await initialised({ url: at(consumer, 'localhost'), ...given });
      await expect.poll(first, { timeout: 60_000 }).toMatchObject({ attempt: 1, status: 204 });
    }
  });

  it('is refused by its field if a range is malformed', async () => {
    const { init } = await initialised({ url: 'http://example.com/', allow_cidrs: ['10.0.0.0/33'] });
    expect(init).toMatchObject({
      status: 400,
      error: { code: 'invalid_request', details: { field: 'webhook.allow_cidrs' } },
    });
  });
});

describe('pause and resume', () => {
  it('hold deliveries back and release them, with one event each', async () => {
    const { call, publish, consumer } = await startDelivering();
    await consumer.arrival('sandbox.ready');
    expect((await call('POST', '/api/v1/sandbox/pause', { body: '{"reason":"idle"}' })).json.data).toEqual({
      state: 'paused',
      memory: true,
    });
    expect((await call('POST', '/api/v1/sandbox/pause')).json.data).toEqual({
      state: 'paused',
      memory: true,
    });
    const { event } = await consumer.arrival('sandbox.paused');
    expect(event.payload).toEqual({
      reason: 'idle',
      resource_usage: {
        cpu_ms: expect.any(Number),
        memory_bytes: expect.any(Number),
        processes: expect.any(Number),
      },
    });
    const { event_id } = (await publish('{}')).json.data;
    const shown = await call('GET', `/api/v1/webhook/deliveries/${event_id}`);
    expect(shown.json.data).toMatchObject({ state: 'pending', attempts: [] });
    const running = { state: 'running', memory: true };
    expect((await call('POST', '/api/v1/sandbox/resume')).json.data).toEqual(running);
    expect((await call('POST', '/api/v1/sandbox/resume')).json.data).toEqual(running);
    await consumer.arrival('agent.event');
    const resumed = await consumer.arrival('sandbox.resumed');
    expect(resumed.event.payload).toEqual({ reason: null, paused_ms: expect.any(Number) });
    expect(consumer.types).toEqual(['sandbox.ready', 'sandbox.paused', 'agent.event', 'sandbox.resumed']);
  });

  it('do not end a main command, with which the daemon would end', async () => {
    const { call } = await startDaemon('--', 'sleep', '1000');
    for (const verb of ['pause', 'resume']) {
      const answer = await call('POST', `/api/v1/sandbox/${verb}`, { body: '{"memory":false}' });
      expect([answer.status, answer.json.error.code]).toEqual([409, 'conflict']);
    }
    expect((await call('GET', '/api/v1/sandbox')).json.data.state).toBe('running');
  });

  it('are answered 409 before the init', async () => {
    const { call } = await startDaemon('--await-init');
    expect((await call('POST', '/api/v1/sandbox/pause')).status).toBe(409);
    expect((await call('POST', '/api/v1/sandbox/resume')).status).toBe(409);
  });
});

describe('init', () => {
  it('gives the sandbox its identity once: the same body is accepted again, another is answered 409', async () => {
    const consumer = await startConsumer();
    const { call, publish } = await startDaemon('--await-init');
    expect((await call('GET', '/api/v1/sandbox')).json.data).toMatchObject({
      state: 'awaiting_init',
      sandbox_id: '',
    });
    expect((await call('GET', '/readyz')).status).toBe(503);
    expect((await publish('{}')).status).toBe(409);
    const body = JSON.stringify({
      sandbox_id: 'sb-9',
      team_id: 'team-9',
      webhook: { url: consumer.url, secret: 'made for this test' },
      env: { GREETING: 'hello' },
    });
    const both = await Promise.all([
      call('POST', '/api/v1/sandbox/init', { body }),
      call('POST', '/api/v1/sandbox/init', { body }),
    ]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect((await call('POST', '/api/v1/sandbox/init', { body })).status).toBe(200);
    const other = body.replace('sb-9', 'sb-10');
    expect((await call('POST', '/api/v1/sandbox/init', { body: other })).status).toBe(409);
    expect((await call('GET', '/readyz')).status).toBe(200);
    expect((await publish('{}')).status).toBe(202);
    await consumer.arrival('agent.event');
    expect(consumer.types).toEqual(['sandbox.ready', 'agent.event']);
    expect(consumer.unsigned('made for this test')).toEqual([]);
    expect(consumer.deliveries[0]?.event).toMatchObject({ sandbox_id: 'sb-9', team_id: 'team-9' });
  });

  it('ignores what a newer manager says, names it once in the log, and tells its version and features', async () => {
    const socket = join(scratchFolder(), 'control.sock');
    const daemon = launch(['--await-init', '--control-socket', socket]);
    await daemon.logged('listening');
    const webhook = { url: 'http://127.0.0.1:9/', later: true };
    const body = { sandbox_id: 'sbx_1', team_id: 't', webhook, colour: 'red' };
    const init = { method: 'POST', path: '/sandbox/init', within_ms: 30_000, body };
    for (let i = 0; i < 2; i++) {
      const data = { state: 'running', version: VERSION, features: FEATURES };
      expect(await requestDaemon(socket, init)).toMatchObject({ status: 200, data });
    }
    await daemon.logged('fields of the init are not known and ignored');
    const told = daemon.log.filter(({ msg }) => msg.startsWith('fields of the init'));
    expect(told).toMatchObject([{ fields: ['colour', 'webhook.later'] }]);
    await requireFeature(socket, 'discard_deliveries');
    const answer = await requestDaemon(socket, { ...init, body: { ...body, colour: 'blue' } });
    expect(answer).toMatchObject({ status: 409 });
  });

  it('is answered 409 without --await-init', async () => {
    const { call } = await startDaemon();
    const body = '{"sandbox_id":"a","team_id":"b","webhook":{"url":"http://127.0.0.1:1/"}}';
    expect((await call('POST', '/api/v1/sandbox/init', { body })).status).toBe(409);
  });

  it.each<[string, string]>([
    ['{"team_id":"t"}', 'sandbox_id'],
    ['{"sandbox_id":"","team_id":"t"}', 'sandbox_id'],
    ['{"sandbox_id":"has space","team_id":"t"}', 'sandbox_id'],
    ['{"sandbox_id":"s","team_id":"t","webhook":{"url":"nonsense"}}', 'webhook.url'],
    [
      '{"sandbox_id":"s","team_id":"t","webhook":{"url":"http://a.test/","watch_dir":"relative"}}',
      'webhook.watch_dir',
    ],
    ['{"sandbox_id":"s","team_id":"t","env":{"A=B":"x"}}', 'env'],
    ['[]', 'body'],
  ])(
    'with the body %s is refused by its field, and may be repeated with a valid one',
    async (body, field) => {
      const { call } = await startDaemon('--await-init');
      const answer = await call('POST', '/api/v1/sandbox/init', { body });
      expect(answer.status).toBe(400);
      expect(answer.json.error.message).toContain(field);
      const good = '{"sandbox_id":"s","team_id":"t"}';
      expect((await call('POST', '/api/v1/sandbox/init', { body: good })).status).toBe(200);
    },
  );

  it("is refused with the daemon's own address as the webhook", async () => {
    const { call, port } = await startDaemon('--await-init');
    const body = JSON.stringify({
      sandbox_id: 's',
      team_id: 't',
      webhook: { url: `http://127.1:${port}${PUBLISH}` },
    });
    expect((await call('POST', '/api/v1/sandbox/init', { body })).status).toBe(400);
  });
});

describe('PUT /sandbox/env', () => {
  it('sets and removes variables by name, and never answers with a value', async () => {
    const { call } = await startDaemon();
    const put = (env: object) => call('PUT', '/api/v1/sandbox/env', { body: JSON.stringify({ env }) });
    expect((await put({ B: 'made for this test', A: '1' })).json.data).toEqual({ names: ['A', 'B'] });
    expect((await put({ A: null, C: '' })).json.data).toEqual({ names: ['B', 'C'] });
    const shown = await call('GET', '/api/v1/sandbox');
    expect(shown.text).not.toContain('made for this test');
  });
});
