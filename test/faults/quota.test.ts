import { describe, expect } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import type { Drawn } from '../../src/quota/rate-authority.ts';
import { RedisAuthority } from '../../src/quota/redis-authority.ts';
import { Program } from '../bench/support/program.ts';
import { RedisServer } from '../support/redis.ts';
import { FakeClock } from './support/fake-clock.ts';
import type { GatewayVerbs } from './support/gateway.ts';
import { fault } from './support/scene.ts';
import { faketimeLibrary } from './support/tools.ts';

const POLICY = { limit_value: 50, interval_ms: 1_000, burst_value: 20 };
const LATER = { LD_PRELOAD: faketimeLibrary(), FAKETIME_DONT_FAKE_MONOTONIC: '1' };
const GATEWAY = new URL('./support/gateway.ts', import.meta.url);

describe('quota', () => {
  fault(
    'F64 gateways with clocks an hour apart on one Redis admit together what one would',
    { needs: ['libfaketime', 'redis-server'] },
    async (scene) => {
      const server = await RedisServer.start();
      scene.undo(() => server.stop());
      const gateways = await Promise.all(
        ['-1h', '+0', '+1h'].map((offset) =>
          Program.start<GatewayVerbs>(GATEWAY, { ...LATER, FAKETIME: offset }),
        ),
      );
      scene.undo(() => Promise.all(gateways.map((gateway) => gateway.stop())));
      const asked = await Promise.all(
        gateways.map((gateway) =>
          gateway.ask('ask', { url: server.url, policy: POLICY, duration_ms: 3_000 }),
        ),
      );
      const [behind, , ahead] = asked.map(({ wall_ms }) => wall_ms) as [number, number, number];
      expect(ahead - behind).toBeGreaterThan(7_000_000);
      const decisions = asked.flatMap(({ decisions }) => decisions);
      expect(decisions.length).toBeGreaterThan(1_000);
      const times = decisions.map(({ decided_at_ms }) => decided_at_ms);
      const elapsed_ms = Math.max(...times) - Math.min(...times);
      const allowed = POLICY.burst_value + Math.floor((POLICY.limit_value * elapsed_ms) / POLICY.interval_ms);
      const admitted = decisions.filter(({ outcome }) => outcome === 'admitted').length;
      expect(admitted).toBeLessThanOrEqual(allowed);
      expect(admitted).toBeGreaterThanOrEqual(allowed * 0.99 - 1);
    },
  );

  fault(
    'the clock of Redis itself is set: nobody gets more than a full bucket for it, and nobody waits for the old time',
    { needs: ['libfaketime', 'redis-server'] },
    async (scene) => {
      const clock = new FakeClock(scene);
      const server = await RedisServer.start(clock.env);
      scene.undo(() => server.stop());
      const authority = await RedisAuthority.open({
        url: server.url,
        region_id: 'eu',
        log: createLog('silent'),
      });
      scene.undo(() => authority.close());
      const policy = { limit_value: 1, interval_ms: 100, burst_value: 5 };
      const draw = () =>
        authority.draw({ team_id: 'team', dimension: 'api_requests' }, policy, 1) as Promise<Drawn>;
      const admittedAtOnce = async () => {
        for (let admitted = 0; ; admitted++) if ((await draw()).outcome !== 'admitted') return admitted;
      };
      expect(await admittedAtOnce()).toBeGreaterThanOrEqual(5);
      clock.step('+1h');
      expect(await admittedAtOnce()).toBeLessThanOrEqual(7);
      clock.step('-1h');
      expect(await admittedAtOnce()).toBeLessThanOrEqual(2);
      await new Promise((resolve) => setTimeout(resolve, 350));
      expect(await admittedAtOnce()).toBeGreaterThanOrEqual(2);
    },
  );
});
