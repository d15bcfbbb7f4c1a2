import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';
const SECRET = 'a-key-for-this-test';

describeOnStores('the main path', (fresh) => {
  it('claims a sandbox, deletes it and delivers its signed sandbox.deleted', async () => {
    const consumer = await startConsumer();
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write', 'webhooks:read');
    const claimed = await team.post(SANDBOXES, {
      template: 'python-3.12',
      config: { webhook: { url: consumer.url, secret: SECRET, watch_dir: '/workspace' }, ttl: 60 },
    });
    expect(claimed.status).toBe(201);
    expect(claimed.data).toEqual({
      sandbox_id: expect.stringMatching(/^sbx_/),
      status: 'running',
      pod_name: expect.stringMatching(/./),
      runtime_id: claimed.data.pod_name,
      persistence: null,
      template: 'python-3.12',
      cluster_id: 'local',
    });
    const path = `${SANDBOXES}/${claimed.data.sandbox_id}`;
    expect((await team.get(path)).data).toMatchObject({
      id: claimed.data.sandbox_id,
      team_id: 'team_1',
      status: 'running',
      paused: false,
      auto_resume: false,
      runtime_generation: 1,
      resources: { memory: '512Mi', cpu: 0.1 },
      hard_expires_at: null,
    });
    expect((await team.call('DELETE', path)).status).toBe(202);
    const { event, headers } = await consumer.arrival('sandbox.deleted');
    expect(event).toMatchObject({
      event_type: 'sandbox.deleted',
      sandbox_id: claimed.data.sandbox_id,
      team_id: 'team_1',
      payload: { reason: 'api', actor: expect.stringMatching(/^tok_/) },
    });
    expect(consumer.unsigned(SECRET)).toEqual([]);
    expect(headers['user-agent']).toMatch(/^sandbox-manager\//);
    await eventually(async () =>
      expect((await team.get(`${path}?include_deleted=true`)).data.status).toBe('deleted'),
    );
    const details = { deleted_at: expect.stringMatching(/Z$/) };
    for (const [method, below] of [
      ['GET', ''],
      ['GET', '/status'],
      ['DELETE', ''],
      ['POST', '/pause'],
      ['POST', '/refresh'],
      ['GET', '/processes'],
      ['GET', '/ports/80'],
    ] as const) {
      expect(await team.call(method, `${path}${below}`), below).toMatchObject({
        status: 404,
        error: { code: 'not_found', details },
      });
    }
    await eventually(async () => {
      const { data } = await team.get('/api/v1/webhooks/deliveries');
      expect(data.deliveries).toMatchObject([{ event_id: event.event_id, state: 'delivered' }]);
    });
  });

  it('pauses, resumes, forks, refreshes and changes', async () => {
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write');
    const id = await team.claim({ ttl: 100, env_vars: { A: '1' } });
    const path = `${SANDBOXES}/${id}`;
    expect((await team.post(`${path}/resume`)).error?.code).toBe('conflict');
    expect((await team.post(`${path}/pause`)).data).toEqual({
      sandbox_id: id,
      paused: true,
      status: 'paused',
      memory: true,
    });
    expect((await team.post(`${path}/pause`)).error?.code).toBe('conflict');
    expect((await team.post(`${path}/resume`, {})).data).toEqual({
      sandbox_id: id,
      resumed: true,
      memory: true,
    });
    expect((await team.get(path)).data).toMatchObject({ runtime_generation: 2, status: 'running' });

    const forked = await team.post(`${path}/fork`, { config: { hard_ttl: 500 } });
    expect(forked.status).toBe(201);
    expect(forked.data).toMatchObject({
      source_sandbox_id: id,
      sandbox: { status: 'paused', paused: true, runtime_generation: 1, hard_expires_at: expect.any(String) },
    });
    expect(forked.data.sandbox.id).not.toBe(id);
    const webhook = { url: 'http://127.0.0.1:9/new', secret: 'of this test', events: ['agent.event'] };
    const { data } = await team.post(`${path}/fork`, { config: { webhook } });
    expect(data.sandbox.webhook).toMatchObject({
      url: webhook.url,
      events: ['agent.event'],
      has_secret: true,
    });
    expect((await team.get(path)).data.webhook).toBeNull();
    for (const [bad, field] of [
      [{ url: 'ftp://consumer.invalid' }, 'config.webhook.url'],
      [{ url: webhook.url, secrets: 'x' }, 'secrets'],
      [null, 'config.webhook'],
    ] as const) {
      const refused = await team.post(`${path}/fork`, { config: { webhook: bad } });
      expect([refused.status, refused.error?.details?.field]).toEqual([400, expect.stringContaining(field)]);
    }
    expect((await team.get(path)).data).toMatchObject({ status: 'running' });

    const before = (await team.get(path)).data.expires_at;
    const refreshed = await team.post(`${path}/refresh`, { duration: 1_000 });
    expect(Date.parse(refreshed.data.expires_at)).toBeGreaterThan(Date.parse(before) + 800_000);
    const changed = await team.call('PUT', path, {
      config: { resources: { memory: '1Gi' }, env_vars: { B: '2' }, ttl: 0, auto_resume: true },
    });
    expect(changed.data).toMatchObject({
      resources: { memory: '1Gi', cpu: 0.1 },
      expires_at: null,
      auto_resume: true,
    });
    expect((await team.post(`${path}/refresh`)).data).toMatchObject({ expires_at: null });
    expect((await team.get(`${path}/status`)).data).toEqual({
      sandbox_id: id,
      runtime_id: expect.stringMatching(/./),
      template_id: 'default',
      team_id: 'team_1',
      pod_name: expect.any(String),
      status: 'running',
      claimed_at: expect.any(String),
      expires_at: null,
      hard_expires_at: null,
      created_at: expect.any(String),
    });
  });

  it('lists by status, template and pages, and shows nobody the sandboxes of others', async () => {
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write');
    const other = await client('team_2', 'sandboxes:write', 'webhooks:read');
    for (let i = 0; i < 5; i++) await team.post(SANDBOXES, { template: i < 2 ? 'a' : 'b' });
    const all = (await team.get(SANDBOXES)).data;
    expect(all).toMatchObject({ count: 5, has_more: false });
    expect((await team.get(`${SANDBOXES}?template_id=a&limit=1`)).data).toMatchObject({
      count: 2,
      has_more: true,
    });
    const [first] = all.sandboxes;
    await team.post(`${SANDBOXES}/${first.id}/pause`);
    expect((await team.get(`${SANDBOXES}?paused=true`)).data).toMatchObject({ count: 1 });
    expect((await team.get(`${SANDBOXES}?paused=false`)).data).toMatchObject({ count: 4 });
    expect((await team.get(`${SANDBOXES}?status=paused`)).data.sandboxes).toMatchObject([{ id: first.id }]);
    expect((await team.get(`${SANDBOXES}?limit=2&offset=4`)).data).toMatchObject({
      count: 5,
      has_more: false,
    });
    expect((await other.get(SANDBOXES)).data).toEqual({ sandboxes: [], count: 0, has_more: false });
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/status'],
      ['DELETE', ''],
      ['POST', '/pause'],
      ['POST', '/resume'],
      ['POST', '/fork'],
      ['POST', '/refresh'],
      ['GET', '/processes'],
      ['POST', '/processes'],
      ['GET', '/webhook/deliveries'],
    ] as const) {
      expect((await other.call(method, `${SANDBOXES}/${first.id}${rest}`)).status, `${method} ${rest}`).toBe(
        404,
      );
    }
    const put = await other.call('PUT', `${SANDBOXES}/${first.id}`, { config: { ttl: 1 } });
    expect(put.status).toBe(404);
  });

  it('answers the same claim once, whoever repeats it', async () => {
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write');
    const key = { 'idempotency-key': 'claim-1' };
    const claims = await Promise.all(
      Array.from({ length: 8 }, () => team.post(SANDBOXES, { template: 'a' }, key)),
    );
    const given = claims.filter(({ status }) => status === 201);
    expect(given.length).toBeGreaterThan(0);
    expect(claims.filter(({ status }) => status === 409).length).toBe(8 - given.length);
    expect(new Set(given.map(({ data }) => data.sandbox_id)).size).toBe(1);
    expect((await team.post(SANDBOXES, { template: 'a' }, key)).data).toEqual(given[0]?.data);
    expect((await team.post(SANDBOXES, { template: 'b' }, key)).error?.code).toBe('conflict');
    expect((await team.get(SANDBOXES)).data.count).toBe(1);
    const other = await client('team_2', 'sandboxes:write');
    expect((await other.post(SANDBOXES, { template: 'b' }, key)).status).toBe(201);
  });
});

describe('what is not taken', () => {
  it.each([
    ['template', { template: 'a/b' }],
    ['template', { template: '' }],
    ['template', { template: 7 }],
    ['config', { config: null }],
    ['config.colour', { config: { colour: 1 } }],
    ['colour', { colour: 1 }],
    ['config.ttl', { config: { ttl: -1 } }],
    ['config.ttl', { config: { ttl: 1.5 } }],
    ['config.ttl', { config: { ttl: '60' } }],
    ['config.hard_ttl', { config: { hard_ttl: 1e300 } }],
    ['config.idle_ttl', { config: { idle_ttl: -1 } }],
    ['config.idle_ttl', { config: { idle_ttl: 4e9 } }],
    ['config.auto_resume', { config: { auto_resume: 'yes' } }],
    ['config.resources.memory', { config: { resources: { memory: '64Mi' } } }],
    ['config.resources.memory', { config: { resources: { memory: '1.5Gi' } } }],
    ['config.resources.memory', { config: { resources: { memory: '512' } } }],
    ['config.resources.memory', { config: { resources: { memory: 512 } } }],
    ['config.resources.cpu', { config: { resources: { cpu: 0 } } }],
    ['config.resources.cpu', { config: { resources: { cpu: -1 } } }],
    ['config.resources.cpu', { config: { resources: { cpu: 'much' } } }],
    ['config.resources.gpu', { config: { resources: { gpu: '1Gi' } } }],
    ['config.webhook.url', { config: { webhook: {} } }],
    ['config.webhook.url', { config: { webhook: { url: 'ftp://example.com/' } } }],
    ['config.webhook.url', { config: { webhook: { url: 'http://a:b@example.com/' } } }],
    ['config.webhook.url', { config: { webhook: { url: 'http://169.254.169.254/latest' } } }],
    ['config.webhook.url', { config: { webhook: { url: 'http://[::1]/' } } }],
    ['config.webhook.secret', { config: { webhook: { url: 'http://example.com', secret: 1 } } }],
    ['config.webhook.watch_dir', { config: { webhook: { url: 'http://example.com', watch_dir: 'a' } } }],
    ['config.env_vars', { config: { env_vars: { 'A=B': '1' } } }],
    ['config.env_vars.A', { config: { env_vars: { A: 1 } } }],
    ['config.env_vars.A\nB', { config: { env_vars: { 'A\nB': 1 } } }],
    ['config.env_vars.A', { config: { env_vars: { A: 'a\0b' } } }],
    ['config.bandwidth.bandwidth_burst_bytes', { config: { bandwidth: { bandwidth_burst_bytes: -1 } } }],
    ['body', []],
    ['body', '{"template"'],
  ])('a claim with a bad %s', async (field, body) => {
    const team = await teamOfItsOwn();
    const answer = await team.post(SANDBOXES, body);
    expect(answer.status).toBe(400);
    expect(answer.error).toMatchObject({ code: 'invalid_request', details: { field } });
    expect((await team.get(SANDBOXES)).data.count).toBe(0);
  });

  it.each([
    ['limit', 'limit=0'],
    ['limit', 'limit=-1'],
    ['limit', 'limit=many'],
    ['offset', 'offset=-1'],
    ['status', 'status=gone'],
    ['paused', 'paused=maybe'],
    ['colour', 'colour=1'],
    ['limit', 'limit=1&limit=2'],
  ])('a list with a bad %s: %s', async (field, query) => {
    const team = await teamOfItsOwn();
    const answer = await team.get(`${SANDBOXES}?${query}`);
    expect(answer.error).toMatchObject({ code: 'invalid_request', details: { field } });
  });

  it('changes with what is set at claim only, or no such thing', async () => {
    const team = await teamOfItsOwn();
    const path = `${SANDBOXES}/${await team.claim()}`;
    for (const [field, config] of [
      ['config.webhook', { webhook: { url: 'http://example.com' } }],
      ['config.resources.cpu', { resources: { cpu: 1 } }],
      ['config.resources.memory', { resources: { memory: '1Mi' } }],
      ['config.template', { template: 'a' }],
      ['config.ttl', { ttl: -1 }],
      ['config.idle_ttl', { idle_ttl: 0.5 }],
      ['config.env_vars', { env_vars: { '': '1' } }],
    ] as const) {
      const { error } = await team.call('PUT', path, { config });
      expect(error, field).toMatchObject({ code: 'invalid_request', details: { field } });
    }
    expect((await team.call('PUT', path, {})).error?.details?.field).toBe('config');
    expect((await team.call('PUT', path)).error?.details?.field).toBe('body');
    expect((await team.post(`${path}/refresh`, { duration: 0.5 })).error?.details?.field).toBe('duration');
    expect((await team.post(`${path}/fork`, { config: { webhook: {} } })).error?.details?.field).toBe(
      'config.webhook.url',
    );
    expect((await team.post(`${path}/pause`, { reason: 1 })).error?.details?.field).toBe('reason');
  });

  it('keys, bodies and methods that are none', async () => {
    const team = await teamOfItsOwn();
    const bad_key = await team.post(SANDBOXES, {}, { 'idempotency-key': 'a key' });
    expect(bad_key.error?.details?.field).toBe('Idempotency-Key');
    expect((await team.post(SANDBOXES, 'x'.repeat(1024 * 1024 + 1))).status).toBe(413);
    expect((await team.call('POST', SANDBOXES, 'a', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await team.call('PATCH', SANDBOXES)).status).toBe(405);
    expect((await team.get('/api/v1/nothing')).status).toBe(404);
    expect((await team.get(`${SANDBOXES}/sbx_nobody`)).status).toBe(404);
    const empty = await team.call('POST', SANDBOXES, '', { 'content-type': 'application/json' });
    expect(empty.status).toBe(201);
  });
});

async function teamOfItsOwn() {
  const { client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  return client('team_1', 'sandboxes:write');
}
