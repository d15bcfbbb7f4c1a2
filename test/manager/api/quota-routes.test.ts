import { expect, it } from 'vitest';
import type { QuotaStatus } from '../../../src/contract/quotas.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';
const RATE = { limit_value: 2, interval_ms: 60_000, burst_value: 3 };
const pathOf = (dimension: string, team_id = TEAM) => `/internal/v1/teams/${team_id}/quotas/${dimension}`;
const DEFAULTS = [
  { dimension: 'active_sandboxes', limit_value: 2 },
  { dimension: 'sandbox_claims', limit_value: 5, interval_ms: 1_000, burst_value: 50 },
];

describeOnStores('the quotas of a team', (fresh) => {
  it('are told in the order of the specification, every key of them', async () => {
    const manager = await startManager(await fresh(), { file: { default_team_quotas: DEFAULTS } });
    const client = await manager.client(TEAM, 'quota:read', 'sandboxes:write');
    await client.claim();
    const { status, data } = await client.get('/api/v1/quotas');
    expect(status).toBe(200);
    const unlimited = {
      limit_value: null,
      interval_ms: null,
      burst_value: null,
      current: null,
      remaining: null,
    };
    const rate = { team_id: TEAM, kind: 'rate' };
    const none = { ...rate, ...unlimited, unlimited: true, source: 'unlimited' };
    expect(data).toEqual([
      {
        ...{ team_id: TEAM, dimension: 'active_sandboxes', kind: 'capacity', limit_value: 2 },
        ...{ interval_ms: null, burst_value: null, current: 1, remaining: 1 },
        ...{ unlimited: false, unit: 'count', source: 'region_default', enforced: true },
      },
      {
        ...{ ...rate, dimension: 'sandbox_claims', limit_value: 5, interval_ms: 1_000, burst_value: 50 },
        ...{ current: null, remaining: null, unlimited: false, unit: 'claims', source: 'region_default' },
        enforced: true,
      },
      { ...none, dimension: 'api_requests', unit: 'requests', enforced: true },
      { ...none, dimension: 'network_egress_bytes', unit: 'bytes', enforced: false },
      { ...none, dimension: 'network_ingress_bytes', unit: 'bytes', enforced: false },
    ]);
    expect((await client.get('/api/v1/quotas/active_sandboxes')).data).toEqual(data[0]);
  });

  it("are the team's own where an operator has set them, at once, and the region's again afterwards", async () => {
    const manager = await startManager(await fresh(), { file: { default_team_quotas: DEFAULTS } });
    const admin = await manager.client('operators', 'admin');
    const client = await manager.client(TEAM, 'quota:read', 'sandboxes:write');
    const other = await manager.client('team_2', 'quota:read');
    const set = await admin.call('PUT', pathOf('active_sandboxes'), { kind: 'capacity', limit_value: 0 });
    expect(set).toMatchObject({
      status: 200,
      data: { limit_value: 0, remaining: 0, source: 'team_override' },
    });
    expect((await client.post('/api/v1/sandboxes')).error).toEqual({
      code: 'quota_exceeded',
      message: expect.any(String),
      details: { dimension: 'active_sandboxes', limit: 0, current: 0, requested: 1, retry_after_ms: null },
    });
    expect((await other.get('/api/v1/quotas/active_sandboxes')).data.limit_value).toBe(2);
    for (let i = 0; i < 2; i++) {
      const back = await admin.call('DELETE', pathOf('active_sandboxes'));
      expect(back).toMatchObject({ status: 200, data: { limit_value: 2, source: 'region_default' } });
    }
    await client.claim();
  });

  it('refuse bad input by name and change nothing', async () => {
    const manager = await startManager(await fresh());
    const admin = await manager.client(TEAM, 'admin', 'quota:read');
    const before = (await admin.get('/api/v1/quotas')).data;
    const bad: [string, unknown, string][] = [
      ['active_sandboxes', {}, 'limit_value'],
      ['active_sandboxes', { limit_value: -1 }, 'limit_value'],
      ['active_sandboxes', { limit_value: 1.5 }, 'limit_value'],
      ['active_sandboxes', { limit_value: '5' }, 'limit_value'],
      ['active_sandboxes', { limit_value: 2 ** 53 }, 'limit_value'],
      ['active_sandboxes', { limit_value: 5, interval_ms: 5 }, 'interval_ms'],
      ['active_sandboxes', { limit_value: 5, colour: 'red' }, 'colour'],
      ['active_sandboxes', { kind: 'rate', limit_value: 5 }, 'kind'],
      ['api_requests', { ...RATE, kind: 'capacity' }, 'kind'],
      ['api_requests', { ...RATE, kind: 'speed' }, 'kind'],
      ['api_requests', { limit_value: 5 }, 'interval_ms'],
      ['api_requests', { limit_value: 5, interval_ms: 5 }, 'burst_value'],
      ['api_requests', { ...RATE, interval_ms: 0 }, 'interval_ms'],
      ['api_requests', { ...RATE, burst_value: -1 }, 'burst_value'],
      ['cpu', { limit_value: 5 }, 'dimension'],
      ['__proto__', { limit_value: 5 }, 'dimension'],
    ];
    for (const [dimension, body, field] of bad) {
      const { status, error } = await admin.call('PUT', pathOf(dimension), body);
      expect({ dimension, body, status, field: error?.details?.field }).toEqual({
        dimension,
        body,
        status: 400,
        field,
      });
    }
    expect((await admin.call('PUT', pathOf('active_sandboxes', 'a%20b'), { limit_value: 1 })).status).toBe(
      400,
    );
    expect((await admin.call('DELETE', pathOf('cpu'))).status).toBe(400);
    expect((await admin.get('/api/v1/quotas/cpu')).status).toBe(400);
    expect((await admin.get('/api/v1/quotas')).data).toEqual(before);
  });

  it('need their scopes', async () => {
    const manager = await startManager(await fresh());
    const reader = await manager.client(TEAM, 'quota:read');
    const writer = await manager.client(TEAM, 'sandboxes:write');
    expect((await writer.get('/api/v1/quotas')).status).toBe(403);
    expect((await reader.call('PUT', pathOf('active_sandboxes'), { limit_value: 1 })).status).toBe(403);
    expect((await reader.call('DELETE', pathOf('active_sandboxes'))).status).toBe(403);
  });
});

describeOnStores('charging', (fresh) => {
  it('counts every external request of a team once, and tells of it on every answer', async () => {
    const manager = await startManager(await fresh());
    const admin = await manager.client(TEAM, 'admin');
    const client = await manager.client(TEAM, 'sandboxes:read');
    expect((await client.get('/api/v1/sandboxes')).headers.get('ratelimit')).toBeNull();
    await admin.call('PUT', pathOf('api_requests'), RATE);
    const statuses: number[] = [];
    const states: (string | null)[] = [];
    for (const path of [
      '/api/v1/sandboxes',
      '/api/v1/quotas',
      '/api/v1/sandboxes/none',
      '/api/v1/sandboxes',
    ]) {
      const { status, headers } = await client.get(path);
      statuses.push(status);
      states.push(headers.get('ratelimit'));
      expect(headers.get('ratelimit-policy')).toBe('"api_requests";q=2;w=60');
    }
    expect(statuses).toEqual([200, 403, 404, 429]);
    expect(states).toEqual([2, 1, 0, 0].map((left) => `"api_requests";r=${left};t=30`));
    const { headers, error } = await client.get('/api/v1/sandboxes');
    expect(error).toMatchObject({
      code: 'quota_exceeded',
      details: { dimension: 'api_requests', limit: 2, current: null, requested: 1 },
    });
    const retry_after_ms = (error?.details as { retry_after_ms?: number } | undefined)?.retry_after_ms ?? 0;
    expect(retry_after_ms).toBeGreaterThan(25_000);
    expect(headers.get('retry-after')).toBe(String(Math.ceil(retry_after_ms / 1_000)));
    expect(headers.get('x-ratelimit-limit')).toBe('2');
    expect(headers.get('x-ratelimit-remaining')).toBe('0');
    // Operators are never locked out, and no token is charged for being wrong.
    expect((await admin.call('DELETE', pathOf('api_requests'))).status).toBe(200);
    expect((await client.get('/api/v1/sandboxes')).status).toBe(200);
  });
});

it('the network quotas are enforced where the network is metered, and a change of them acts at once', async () => {
  const runtime = new ScriptedRuntime();
  const { networks } = runtime;
  networks.mode = { mode: 'metered', reason: null, block_all: 'network_namespace' };
  const clock = new ManualClock();
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`, { runtime, clock });
  const admin = await client('operators', 'admin');
  const team = await client(TEAM, 'quota:read');
  const enforced = (await team.get('/api/v1/quotas')).data.map((each: QuotaStatus) => each.enforced);
  expect(enforced).toEqual([true, true, true, true, true]);
  await clock.advance(0);
  const limits: unknown[] = [];
  networks.onRefresh = async () => {
    limits.push(await networks.sources?.limitsOf(TEAM));
  };
  const path = pathOf('network_egress_bytes');
  await admin.call('PUT', path, RATE);
  // Time stands still: only the change can have caused the refresh.
  await expect.poll(() => limits).toEqual([{ egress: RATE, ingress: null }]);
  const { data } = await admin.call('DELETE', path);
  expect(data).toMatchObject({ dimension: 'network_egress_bytes', unlimited: true, enforced: true });
  await expect.poll(() => limits.at(-1)).toEqual({ egress: null, ingress: null });
  networks.mode = { mode: 'none', reason: null, block_all: 'network_namespace' };
  expect((await team.get('/api/v1/quotas/network_egress_bytes')).data.enforced).toBe(true);
});
