import { beforeEach, describe, expect, it } from 'vitest';
import type { RatePolicy } from '../../../src/contract/quotas.ts';
import type { Dimension } from '../../../src/contract/words.ts';
import { draw, fullBucket } from '../../../src/manager/quotas/bucket.ts';
import { drawn } from '../../../src/manager/quotas/rate-authority.ts';
import { rateLimitHeaders } from '../../../src/manager/quotas/rate-charges.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { HAS_REDIS, RedisServer } from '../../support/redis.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';
const RATE = { limit_value: 2, interval_ms: 60_000, burst_value: 3 };
const pathOf = (dimension: string, team_id = TEAM) => `/internal/v1/teams/${team_id}/quotas/${dimension}`;

const PATH = '/api/v1/sandboxes';
const FIVE = { dimension: 'api_requests', limit_value: 1, interval_ms: 60_000, burst_value: 5 };
const CLAIMS = { ...FIVE, dimension: 'sandbox_claims' };

describeOnStores('a rate', (fresh) => {
  it('counts a claim, but neither a resume nor a fork', async () => {
    const manager = await startManager(await fresh());
    const admin = await manager.client(TEAM, 'admin');
    const client = await manager.client(TEAM, 'sandboxes:write');
    await admin.call('PUT', pathOf('sandbox_claims'), { ...RATE, burst_value: 1 });
    const sandbox_id = await client.claim();
    const refused = await client.post('/api/v1/sandboxes');
    expect(refused).toMatchObject({ status: 429, error: { details: { dimension: 'sandbox_claims' } } });
    expect(refused.headers.get('ratelimit')).toBe('"sandbox_claims";r=0;t=30');
    expect((await client.post(`/api/v1/sandboxes/${sandbox_id}/fork`)).status).toBe(201);
    expect((await client.post(`/api/v1/sandboxes/${sandbox_id}/pause`)).status).toBe(200);
    expect((await client.post(`/api/v1/sandboxes/${sandbox_id}/resume`)).status).toBe(200);
  });
});

describe.skipIf(!HAS_REDIS)('a rate in Redis', () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await RedisServer.start();
    return () => server.stop();
  });

  it('charges nothing to internal tokens', async () => {
    const folder = scratchFolder();
    const setting = { folder, options: { redis: server.url }, file: { default_team_quotas: [FIVE, CLAIMS] } };
    const manager = await startManager(`sqlite:${folder}/manager.db`, setting);
    const internal = await manager.internalClient('team_1', 'sandboxes:write');
    for (let i = 0; i < 8; i++) {
      const { status, headers } = await internal.post(PATH);
      expect([status, headers.get('ratelimit')]).toEqual([201, null]);
    }
    const external = await manager.client('team_1', 'sandboxes:write');
    expect((await external.get(PATH)).headers.get('ratelimit')).toBe('"api_requests";r=4;t=60');
  });
});

function charged(dimension: Dimension, policy: RatePolicy, tokens = policy.burst_value) {
  const { bucket, is_admitted } = draw({ ...fullBucket(policy, 0), tokens }, policy, 1, 0);
  return { dimension, policy, drawn: drawn(bucket, is_admitted, 1) };
}

describe('rate limit headers', () => {
  it('tell quota, window, what is left and when more is there', () => {
    const policy = { limit_value: 100, interval_ms: 1_000, burst_value: 100 };
    expect(rateLimitHeaders([charged('api_requests', policy)])).toEqual({
      'ratelimit-policy': '"api_requests";q=100;w=1',
      ratelimit: '"api_requests";r=99;t=1',
    });
  });

  it('list every rate that a request is charged against', () => {
    const api = { limit_value: 1, interval_ms: 60_000, burst_value: 2 };
    const claims = { limit_value: 5, interval_ms: 1_500, burst_value: 5 };
    expect(rateLimitHeaders([charged('api_requests', api, 0), charged('sandbox_claims', claims)])).toEqual({
      'ratelimit-policy': '"api_requests";q=1;w=60, "sandbox_claims";q=5;w=2',
      ratelimit: '"api_requests";r=0;t=60, "sandbox_claims";r=4;t=1',
    });
  });

  it('say nothing where nothing is limited', () => {
    expect(rateLimitHeaders([])).toEqual({});
  });

  it('stay within what a structured field can hold', () => {
    const policy = { limit_value: 2 ** 53 - 1, interval_ms: 1, burst_value: 2 ** 53 - 1 };
    expect(rateLimitHeaders([charged('api_requests', policy)])['ratelimit-policy']).toBe(
      '"api_requests";q=999999999999999;w=1',
    );
  });
});
