import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { QuotaStatus } from '../../../src/contract/quotas.ts';
import { timed, until } from '../../faults/support/until.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { HAS_REDIS, RedisServer } from '../../support/redis.ts';
import { scratchFolder } from '../../support/scratch.ts';

const RATE = { dimension: 'api_requests', limit_value: 1, interval_ms: 60_000, burst_value: 5 };
const CLAIMS = { ...RATE, dimension: 'sandbox_claims' };
const PATH = '/api/v1/sandboxes';

describe.skipIf(!HAS_REDIS)('a manager with a rate authority in Redis', () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await RedisServer.start();
    return () => server.stop();
  });
  afterEach(() => server.signal('SIGCONT'));

  const start = async (more: object = {}): Promise<{ client: Client; again: () => Promise<Client> }> => {
    const folder = scratchFolder();
    const setting = {
      folder,
      options: { redis: server.url, ...more },
      file: { default_team_quotas: [RATE, CLAIMS] },
    };
    const clientOf = async (manager: Awaited<ReturnType<typeof startManager>>) =>
      manager.client('team_1', 'sandboxes:write', 'quota:read');
    const first = await startManager(`sqlite:${folder}/first.db`, setting);
    return {
      client: await clientOf(first),
      again: async () => clientOf(await startManager(`sqlite:${folder}/second.db`, setting)),
    };
  };
  const statuses = async (client: Client, count: number) => {
    const answers = [];
    for (let i = 0; i < count; i++) answers.push((await client.get(PATH)).status);
    return answers;
  };

  it('shares buckets with every replica of the region', async () => {
    const { client, again } = await start();
    const other = await again();
    expect(await statuses(client, 3)).toEqual([200, 200, 200]);
    expect(await statuses(other, 3)).toEqual([200, 200, 429]);
    const { status, headers } = await client.get(PATH);
    expect([status, headers.get('ratelimit')]).toEqual([429, '"api_requests";r=0;t=60']);
  });

  it.each([
    ['hangs', () => server.signal('SIGSTOP'), () => server.signal('SIGCONT')],
    ['is killed', () => server.kill(), () => server.start()],
  ])(
    'admits nothing while Redis %s, answers quickly, and continues without a restart',
    async (_, fail, heal) => {
      const { client } = await start();
      await fail();
      for (let i = 0; i < 5; i++) {
        const { result, took_ms } = await timed(() => client.post(PATH));
        expect(result).toMatchObject({ status: 503, error: { code: 'unavailable' } });
        expect(result.headers.get('retry-after')).toBe('1');
        expect(took_ms).toBeLessThan(1_000);
      }
      const ready = await client.get('/readyz');
      expect(ready).toMatchObject({
        status: 200,
        data: { rate_authority: 'redis', rate_authority_reachable: false },
      });
      await heal();
      await until('requests are admitted', async () => (await client.get(PATH)).status === 200);
      await until('it is ready', async () => (await client.get('/readyz')).data.rate_authority_reachable);
    },
  );

  it('admits everything while Redis is away with --quota-fail-open', async () => {
    const { client } = await start({ quota_fail_open: 'true' });
    await server.kill();
    const sandboxes = await Promise.all(Array.from({ length: 20 }, () => client.claim()));
    expect(new Set(sandboxes).size).toBe(20);
    const enforced = async () => {
      const { data } = await client.get('/api/v1/quotas');
      return data.flatMap((quota: QuotaStatus) => (quota.enforced ? [quota.dimension] : []));
    };
    expect(await enforced()).toEqual(['active_sandboxes']);
    await server.start();
    await until('rates hold again', async () => (await client.get(PATH)).status === 429);
  });
});

it('a manager without Redis keeps rates in its process and says so in /readyz', async () => {
  const manager = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const client = await manager.client('team_1', 'sandboxes:read');
  expect((await client.get('/readyz')).data).toMatchObject({ rate_authority: 'process' });
});
