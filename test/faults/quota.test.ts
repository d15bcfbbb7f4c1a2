import { describe, expect } from 'vitest';
import { Program } from '../bench/support/program.ts';
import { RedisServer } from '../support/redis.ts';
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
});
