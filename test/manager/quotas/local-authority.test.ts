import { describe, expect, it } from 'vitest';
import { LocalAuthority } from '../../../src/manager/quotas/local-authority.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('the process authority', () => {
  it('forgets buckets that are full again', async () => {
    const clock = new ManualClock();
    const authority = new LocalAuthority(clock);
    const policy = { limit_value: 1, interval_ms: 1, burst_value: 1 };
    for (let i = 0; i < 20_000; i++) {
      if (i % 1_000 === 0) await clock.advance(10);
      await authority.draw({ team_id: `team ${i}`, dimension: 'api_requests' }, policy, 1);
    }
    expect(authority.buckets).toBeLessThan(10_000);
  });
});
