import { setTimeout as sleep } from 'node:timers/promises';
import { createLog } from '../../../src/base/log.ts';
import type { RatePolicy } from '../../../src/contract/quotas.ts';
import type { Drawn } from '../../../src/manager/quotas/rate-authority.ts';
import { RedisAuthority } from '../../../src/manager/quotas/redis-authority.ts';
import { serve } from '../../bench/support/program.ts';

export type GatewayVerbs = {
  ask: (input: {
    url: string;
    policy: RatePolicy;
    duration_ms: number;
  }) => Promise<{ wall_ms: number; decisions: Drawn[] }>;
};

/** A gateway in a process of its own, so that its clock can be another: it asks for one token after another. */
serve<GatewayVerbs>({
  async ask({ url, policy, duration_ms }) {
    const authority = await RedisAuthority.open({ url, region_id: 'eu', log: createLog('silent') });
    const decisions: Drawn[] = [];
    const end_ms = performance.now() + duration_ms;
    while (performance.now() < end_ms) {
      const decision = await authority.draw({ team_id: 'team', dimension: 'api_requests' }, policy, 1);
      if (decision.outcome === 'unreachable') throw new Error(decision.reason);
      decisions.push(decision);
      await sleep(1);
    }
    await authority.close();
    return { wall_ms: Date.now(), decisions };
  },
});
