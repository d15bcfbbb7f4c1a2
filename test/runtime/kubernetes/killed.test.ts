import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { TestCluster, whyNoLongTests } from '../../support/kubernetes/cluster.ts';
import { Campaign, type KilledVerb } from '../../support/kubernetes/kills/campaign.ts';
import type { ManagerStores } from '../../support/kubernetes/kills/killed-managers.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../../support/postgres.ts';
import { HAS_REDIS, RedisServer } from '../../support/redis.ts';
import { scratchFolder } from '../../support/scratch.ts';

vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 900_000 });

const why_not = whyNoLongTests();
if (why_not !== null) console.log(`skipped, managers of a cluster that are killed: ${why_not}`);

/** A deletion with records that the sandbox's daemon could not deliver; `is_lost`: of a sandbox whose Pod was evicted. */
async function deletion(campaign: Campaign, is_lost = false): Promise<KilledVerb> {
  const id = await campaign.claimed();
  campaign.refused.add(id);
  await campaign.publish(id);
  await campaign.publish(id);
  if (is_lost) await campaign.evict(id);
  return {
    goes_on: true,
    act: (first) => campaign.delete(id, first),
    async settled() {
      await campaign.gone(id);
      await campaign.only();
      campaign.refused.delete(id);
    },
  };
}

let claims = 0;

/** A claim that its caller repeats with the same key. */
async function claim(campaign: Campaign): Promise<KilledVerb> {
  const { managers } = campaign;
  const key = `claim-${++claims}`;
  let made: string | null = null;
  const ask = (first: boolean) => managers.call('POST', '', { body: campaign.claim, key, first });
  return {
    goes_on: false,
    act: ask,
    async settled() {
      if (made === null) {
        const { status, data, error } = await ask(false);
        if (status !== 201) throw new Error(`${status} ${JSON.stringify(error)}`);
        made = data.sandbox_id as string;
        await campaign.only(made);
        await campaign.publish(made);
      }
      await campaign.gone(made);
      await campaign.only();
    },
  };
}

/** A fork of a sandbox that goes on. */
function fork(campaign: Campaign, source: string): () => Promise<KilledVerb> {
  return async () => {
    let child: string | null = null;
    let is_seen = false;
    return {
      goes_on: false,
      async act(first) {
        const { status, data, error } = await campaign.managers.call('POST', `/${source}/fork`, {
          ...{ body: {}, first },
        });
        if (status !== 201) throw new Error(`${status} ${JSON.stringify(error)}`);
        child = data.sandbox.id as string;
      },
      async settled() {
        if (child !== null && !is_seen) {
          await campaign.managers.do('POST', `/${child}/resume`).catch(() => {}); // it is already
          expect(await campaign.run(child, 'cat made')).toBe('made');
          is_seen = true;
        }
        if (child !== null) await campaign.gone(child);
        await campaign.only(source);
        expect((await campaign.managers.do('GET', `/${source}`)).status).toBe('running');
        await campaign.publish(source);
      },
    };
  };
}

function campaigns(cluster: () => TestCluster, stores: () => Promise<ManagerStores>, count: number): void {
  const start = async () => Campaign.start(cluster(), await stores(), count);

  it('a deletion', async () => {
    const campaign = await start();
    const result = await campaign.of(() => deletion(campaign));
    await campaign.complete();
    console.log('deletion', JSON.stringify(result));
  });

  it('a deletion of a sandbox that is lost', async () => {
    const campaign = await start();
    const result = await campaign.of(() => deletion(campaign, true));
    await campaign.complete();
    console.log('lost', JSON.stringify(result));
  });

  it('a claim', async () => {
    const campaign = await start();
    const result = await campaign.of(() => claim(campaign));
    await campaign.complete();
    console.log('claim', JSON.stringify(result));
  });

  it('a fork', async () => {
    const campaign = await start();
    const source = await campaign.claimed();
    await campaign.run(source, 'echo made > made');
    const result = await campaign.of(fork(campaign, source));
    await eventually(() => campaign.gone(source), 240_000);
    await campaign.complete();
    console.log('fork', JSON.stringify(result));
  });
}

describe.skipIf(why_not !== null)(
  'a manager that is killed at every step is survived on a cluster by',
  () => {
    let cluster: TestCluster;

    beforeAll(async () => {
      cluster = await TestCluster.start();
    });

    afterAll(() => cluster?.stop());

    describe('itself, started again, on SQLite', () => {
      const stores = async () => ({ database: `sqlite:${join(scratchFolder(), 'manager.db')}`, redis: null });
      campaigns(() => cluster, stores, 1);
    });

    describe.skipIf(postgresPrograms() === null || !HAS_REDIS)('another, on PostgreSQL and Redis', () => {
      let postgres: PostgresServer;
      let redis: RedisServer;

      beforeAll(async () => {
        postgres = await startPostgres();
        redis = await RedisServer.start();
      });

      afterAll(async () => {
        await redis?.stop();
        await postgres?.stop();
      });

      campaigns(
        () => cluster,
        async () => ({ database: await postgres.database(), redis: redis.url }),
        2,
      );
    });
  },
);
