import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { RatePolicy } from '../../../src/contract/quotas.ts';
import { BUCKET_SCRIPT } from '../../../src/manager/quotas/bucket-script.ts';
import { LocalAuthority } from '../../../src/manager/quotas/local-authority.ts';
import type { Drawn, RateAuthority } from '../../../src/manager/quotas/rate-authority.ts';
import { RedisAuthority } from '../../../src/manager/quotas/redis-authority.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { HAS_REDIS, RedisServer } from '../../support/redis.ts';

/** An authority whose time the test owns. */
interface Owned {
  authority: RateAuthority;
  /** Lets this much time pass. */
  pass(by_ms: number): Promise<void>;
  end(): Promise<void>;
}

function owned_here(): Owned {
  const clock = new ManualClock();
  const authority = new LocalAuthority(clock);
  return { authority, pass: (by_ms) => clock.advance(by_ms), end: () => authority.close() };
}

/** The script as it is, on a real server; only its time comes from a key. */
const CLOCK_KEY = 'test:clock';
const OWNED_SCRIPT = BUCKET_SCRIPT.replace("call('TIME')", `call('LRANGE', '${CLOCK_KEY}', 0, 1)`);

const log = createLog('silent');
let server: RedisServer;
let regions = 0;

async function owned_in_redis(): Promise<Owned> {
  const redis = new Redis(server.url);
  let now_ms = 1_800_000_000_000;
  const tell = async () => {
    const time = [String(Math.floor(now_ms / 1_000)), String((now_ms % 1_000) * 1_000)];
    await redis
      .multi()
      .del(CLOCK_KEY)
      .rpush(CLOCK_KEY, ...time)
      .exec();
  };
  await tell();
  const options = { url: server.url, region_id: `region ${++regions}`, log };
  const authority = await RedisAuthority.open({ ...options, script: OWNED_SCRIPT });
  return {
    authority,
    pass: (by_ms) => {
      now_ms += by_ms;
      return tell();
    },
    async end() {
      redis.disconnect();
      await authority.close();
    },
  };
}

const number = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 40 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 2_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 2 ** 52, max: Number.MAX_SAFE_INTEGER }) },
);
const policies: fc.Arbitrary<RatePolicy> = fc.record({
  limit_value: number,
  interval_ms: number.map((value) => Math.max(1, value)),
  burst_value: number,
});
const sequences = fc.record({
  policies: fc.array(policies, { minLength: 1, maxLength: 3 }),
  draws: fc.array(
    fc.record({
      team: fc.nat(1),
      policy: fc.nat(2),
      gap_ms: fc.oneof(fc.nat(50), fc.nat(20_000), fc.nat(2 ** 40)),
      requested: fc.oneof(fc.integer({ min: 1, max: 5 }), number),
      reserved: fc.option(fc.oneof(fc.integer({ min: -5, max: 50 }), fc.nat(2 ** 30))),
    }),
    { minLength: 1, maxLength: 40 },
  ),
});

const kinds = [
  { kind: 'process', make: async () => owned_here(), is_there: true },
  { kind: 'redis', make: owned_in_redis, is_there: HAS_REDIS },
];

beforeAll(async () => {
  if (HAS_REDIS) server = await RedisServer.start();
});
afterAll(() => server?.stop());

describe.each(kinds)('the $kind authority', ({ kind, make, is_there }) => {
  describe.skipIf(!is_there)('on time that the test owns', () => {
    let owned: Owned;
    beforeEach(async () => {
      owned = await make();
      return () => owned.end();
    });

    const policy = { limit_value: 5, interval_ms: 1_000, burst_value: 8 };
    const ask = async (team_id: string, requested = 1, under: RatePolicy = policy): Promise<Drawn> => {
      const decision = await owned.authority.draw({ team_id, dimension: 'sandbox_claims' }, under, requested);
      if (decision.outcome === 'unreachable') throw new Error(decision.reason);
      return decision;
    };

    it('says what it is and that it answers', () => {
      expect(owned.authority).toMatchObject({ kind, is_reachable: true });
    });

    it('admits the burst, refuses with the time to wait, and admits again after it', async () => {
      for (let left = 7; left >= 0; left--) {
        expect(await ask('a')).toMatchObject({ outcome: 'admitted', remaining: left, retry_after_ms: 0 });
      }
      expect(await ask('a')).toMatchObject({ outcome: 'refused', remaining: 0, retry_after_ms: 200 });
      expect(await ask('a', 3)).toMatchObject({ outcome: 'refused', retry_after_ms: 600 });
      await owned.pass(199);
      expect(await ask('a')).toMatchObject({ outcome: 'refused', retry_after_ms: 1, next_token_ms: 1 });
      await owned.pass(1);
      expect(await ask('a')).toMatchObject({ outcome: 'admitted', remaining: 0, next_token_ms: 200 });
    });

    it('keeps teams and dimensions apart, whatever their names are made of', async () => {
      const names = ['a', 'a:sandbox_claims', 'a b', '', 'ä', '%3A', 'A'];
      for (const team_id of names) expect((await ask(team_id, 8)).outcome).toBe('admitted');
      for (const team_id of names) expect((await ask(team_id)).outcome).toBe('refused');
      const other = await owned.authority.draw({ team_id: 'a', dimension: 'api_requests' }, policy, 8);
      expect(other.outcome).toBe('admitted');
    });

    it('admits all or nothing of what is requested', async () => {
      expect(await ask('b', 6)).toMatchObject({ outcome: 'admitted', remaining: 2 });
      expect(await ask('b', 3)).toMatchObject({ outcome: 'refused', remaining: 2 });
      expect(await ask('b', 2)).toMatchObject({ outcome: 'admitted', remaining: 0 });
      expect(await ask('b', 9)).toMatchObject({ outcome: 'refused', retry_after_ms: 1_000 });
    });

    it('keeps the fill when the policy changes', async () => {
      await ask('c', 4);
      expect(await ask('c', 1, { ...policy, burst_value: 16 })).toMatchObject({ remaining: 7 });
      expect(await ask('c', 1, { ...policy, burst_value: 4 })).toMatchObject({ remaining: 0 });
      expect(await ask('c', 1, { ...policy, limit_value: 0 })).toMatchObject({
        outcome: 'refused',
        remaining: 0,
      });
    });

    it('decides one by one what is asked at once', async () => {
      const all = await Promise.all(Array.from({ length: 200 }, () => ask('d')));
      expect(all.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(8);
    });

    it('admits over a simulated minute of random load no more than burst and refill, and not less than 99 %', async () => {
      const gap = fc.sample(fc.nat(40), { numRuns: 3_000, seed: 7 });
      let now_ms = 0;
      let admitted = 0;
      for (let i = 0; now_ms < 60_000; i++) {
        const gap_ms = gap[i % gap.length] as number;
        now_ms += gap_ms;
        await owned.pass(gap_ms);
        if ((await ask('e')).outcome === 'admitted') admitted += 1;
        const allowed = 8 + Math.floor((5 * now_ms) / 1_000);
        if (admitted > allowed) throw new Error(`${admitted} of ${allowed} after ${now_ms} ms`);
      }
      // A load of about 50 a second wants all of it.
      expect(admitted / (8 + Math.floor((5 * now_ms) / 1_000))).toBeGreaterThan(0.99);
    });
  });
});

describe.skipIf(!HAS_REDIS)('both authorities', () => {
  it('come to the same decisions for the same sequence', async () => {
    await fc.assert(
      fc.asyncProperty(sequences, async ({ policies, draws }) => {
        const [here, there] = [owned_here(), await owned_in_redis()];
        for (const { team, policy, gap_ms, requested, reserved } of draws) {
          const decisions = await Promise.all(
            [here, there].map(async ({ authority, pass }) => {
              await pass(gap_ms);
              const under = policies[policy % policies.length] as RatePolicy;
              const name = { team_id: `team ${team}`, dimension: 'api_requests' } as const;
              const decision = await authority.draw(name, under, requested);
              // Of a dimension of its own, as a debt is no content of a bucket that is drawn from.
              const bytes = { ...name, dimension: 'network_egress_bytes' } as const;
              const reservation = reserved !== null && (await authority.reserve(bytes, under, reserved));
              return { ...decision, reservation, decided_at_ms: undefined };
            }),
          );
          expect(decisions[1]).toEqual(decisions[0]);
        }
        await Promise.all([here.end(), there.end()]);
      }),
      { numRuns: 150 },
    );
  });
});

describe.skipIf(!HAS_REDIS)('the redis authority', () => {
  it('gives no more than a full bucket where its clock is set, and waits for no old time', async () => {
    const { authority, pass, end } = await owned_in_redis();
    const policy = { limit_value: 1, interval_ms: 100, burst_value: 5 };
    const admitted = async () => {
      const name = { team_id: 'team', dimension: 'api_requests' } as const;
      for (let count = 0; ; count++) {
        if ((await authority.draw(name, policy, 1)).outcome !== 'admitted') return count;
      }
    };
    expect(await admitted()).toBe(5);
    await pass(3_600_000);
    expect(await admitted()).toBe(5);
    await pass(-3_600_000);
    expect(await admitted()).toBe(0);
    await pass(300);
    expect(await admitted()).toBe(3);
    await end();
  });
});
