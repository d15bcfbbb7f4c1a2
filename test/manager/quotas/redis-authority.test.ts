import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { RateDecision } from '../../../src/manager/quotas/rate-authority.ts';
import { RedisAuthority } from '../../../src/manager/quotas/redis-authority.ts';
import { timed, until } from '../../faults/support/until.ts';
import { HAS_REDIS, RedisServer } from '../../support/redis.ts';

const log = createLog('silent');
const NAME = { team_id: 'team', dimension: 'api_requests' } as const;
/** Never empty within a test. */
const AMPLE = { limit_value: 1_000, interval_ms: 1, burst_value: 1_000_000 };
/** 100 ms for the answer, and room for a busy machine. */
const QUICKLY_MS = 400;
const AT_ONCE_MS = 50;

describe.skipIf(!HAS_REDIS)('the redis authority', () => {
  let server: RedisServer;
  let authority: RedisAuthority;
  const draw = (): Promise<RateDecision> => authority.draw(NAME, AMPLE, 1);
  const outcomes = async (count: number) => {
    const all = await Promise.all(Array.from({ length: count }, draw));
    return [...new Set(all.map(({ outcome }) => outcome))];
  };
  const recovered = () => until('the authority answers', async () => (await draw()).outcome === 'admitted');

  beforeEach(async () => {
    server = await RedisServer.start();
    authority = await RedisAuthority.open({ url: server.url, region_id: 'eu', log });
    expect((await draw()).outcome).toBe('admitted');
  });
  afterEach(async () => {
    await authority.close();
    await server.stop();
  });

  it('leaves a server that hangs after 100 ms, refuses at once from then on, and is back when it is', async () => {
    server.signal('SIGSTOP');
    const first = await timed(() => outcomes(32));
    expect(first.result).toEqual(['unreachable']);
    expect(first.took_ms).toBeGreaterThan(90);
    expect(first.took_ms).toBeLessThan(QUICKLY_MS);
    expect(authority.is_reachable).toBe(false);
    for (let i = 0; i < 20; i++) {
      const next = await timed(() => outcomes(32));
      expect(next.result).toEqual(['unreachable']);
      expect(next.took_ms).toBeLessThan(AT_ONCE_MS);
    }
    server.signal('SIGCONT');
    await recovered();
  });

  it('knows that a server is back also where nobody asks', async () => {
    server.signal('SIGSTOP');
    await draw();
    expect(authority.is_reachable).toBe(false);
    server.signal('SIGCONT');
    await until('it is reachable', () => authority.is_reachable);
  });

  it('finds a killed server again, and its buckets are full', async () => {
    await server.kill();
    const { result, took_ms } = await timed(() => outcomes(32));
    expect(result).toEqual(['unreachable']);
    expect(took_ms).toBeLessThan(QUICKLY_MS);
    await server.start();
    await recovered();
  });

  it('is unreachable while the server takes no writes for want of memory', async () => {
    await server.command('config', 'set', 'maxmemory', '1');
    expect(await outcomes(8)).toEqual(['unreachable']);
    await server.command('config', 'set', 'maxmemory', '0');
    await recovered();
  });

  it('is unreachable while the server is a replica', async () => {
    await server.command('replicaof', '127.0.0.1', '1');
    await until('it is refused', async () => (await draw()).outcome === 'unreachable');
    expect(await outcomes(8)).toEqual(['unreachable']);
    await server.command('replicaof', 'no', 'one');
    await recovered();
    await until('it is reachable', () => authority.is_reachable);
  });

  it('gives the script again to a server that forgot it', async () => {
    for (let i = 0; i < 5; i++) {
      await server.command('script', 'flush');
      expect(await outcomes(32)).toEqual(['admitted']);
    }
  });

  it('is unreachable while clients are paused, and goes on afterwards', async () => {
    await server.command('client', 'pause', '400');
    const { result, took_ms } = await timed(draw);
    expect(result.outcome).toBe('unreachable');
    expect(took_ms).toBeLessThan(QUICKLY_MS);
    await recovered();
  });

  it('takes whatever is no bucket for a full one, once, and tells nobody else of it', async () => {
    const key = 'sandbox-manager:quota:eu:team:api_requests';
    const { limit_value, interval_ms, burst_value } = AMPLE;
    const place = async (bytes: Buffer | string) => server.command('set', key, bytes as string);
    const bucket = (...numbers: number[]) => {
      const bytes = Buffer.alloc(48);
      for (const [i, number] of numbers.entries()) bytes.writeDoubleBE(number, i * 8);
      return bytes;
    };
    const policy = [limit_value, interval_ms, burst_value];
    const now_ms = Date.now();
    const oddities: (() => Promise<unknown>)[] = [
      () => place('junk'),
      () => place(Buffer.alloc(48, 0xff)),
      () => place(bucket(Number.NaN, 0, now_ms, ...policy)),
      () => place(bucket(1e300, 0, now_ms, ...policy)),
      () => place(bucket(-1, 0, now_ms, ...policy)),
      () => place(bucket(0.5, 0, now_ms, ...policy)),
      () => place(bucket(0, 5, now_ms, ...policy)),
      () => place(bucket(0, 0, Number.NEGATIVE_INFINITY, ...policy)),
      () => place(bucket(0, 0, now_ms, limit_value, 0, burst_value)),
      () => place(bucket(0, 0, now_ms, Number.POSITIVE_INFINITY, interval_ms, burst_value)),
      () => server.command('rpush', key, 'junk'),
      () => server.command('hset', key, 'tokens', '1'),
    ];
    for (const make of oddities) {
      await server.command('del', key);
      await make();
      expect(await draw()).toMatchObject({ outcome: 'admitted', remaining: burst_value - 1 });
      expect(authority.is_reachable).toBe(true);
      expect(await server.command('strlen', key)).toBe(48);
    }
  });

  it('lets nobody wait for a bucket that is dated ahead', async () => {
    const key = 'sandbox-manager:quota:eu:team:api_requests';
    const bytes = Buffer.alloc(48);
    const ahead = [0, 0, Number.MAX_SAFE_INTEGER, ...Object.values(AMPLE)];
    for (const [i, number] of ahead.entries()) bytes.writeDoubleBE(number, i * 8);
    await server.command('set', key, bytes as unknown as string);
    expect((await draw()).outcome).toBe('refused');
    await until('tokens come in', async () => (await draw()).outcome === 'admitted');
  });

  it('holds region and team in its keys, and forgets what is full again', async () => {
    const [key] = (await server.command('keys', '*team*')) as string[];
    expect(key).toBe('sandbox-manager:quota:eu:team:api_requests');
    const ttl_ms = (await server.command('pttl', key as string)) as number;
    expect(ttl_ms).toBeGreaterThan(50_000);
    expect(ttl_ms).toBeLessThan(70_000);
    const other = await RedisAuthority.open({ url: server.url, region_id: 'us', log });
    expect(await other.draw(NAME, { ...AMPLE, burst_value: 7 }, 1)).toMatchObject({ remaining: 6 });
    await other.close();
  });

  it('starts without a server and finds it later', async () => {
    await server.kill();
    const lines: Record<string, string>[] = [];
    const early_log = createLog('info', { write: (line) => void lines.push(JSON.parse(line)) });
    const early = await RedisAuthority.open({ url: server.url, region_id: 'eu', log: early_log });
    expect(early.is_reachable).toBe(false);
    expect((await early.draw(NAME, AMPLE, 1)).outcome).toBe('unreachable');
    await server.start();
    await until('it answers', async () => (await early.draw(NAME, AMPLE, 1)).outcome === 'admitted');
    await early.close();
    expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
      ['the rate authority does not answer', `connection refused (ECONNREFUSED 127.0.0.1:${server.port})`],
      ['the rate authority answers', undefined],
    ]);
  });

  it.each(['', 'localhost:6379', 'http://localhost:6379', 'redis'])(
    'does not start with the address %j',
    (url) =>
      expect(RedisAuthority.open({ url, region_id: 'eu', log })).rejects.toThrow(
        '--redis must be a URL such as',
      ),
  );
});
