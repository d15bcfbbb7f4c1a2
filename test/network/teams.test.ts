import { describe, expect, it } from 'vitest';
import { Teams } from '../../src/network/teams.ts';
import { LendingAuthority, teamLimits, UNLIMITED } from '../support/network/test-node.ts';

describe('the limits of teams', () => {
  it('change when a number does, and say so to the meter', () => {
    const teams = new Teams();
    expect(teams.change('a', teamLimits(1_000))).toBe(true);
    const first = teams.ratesOf('a');
    expect(first.egress).toMatchObject({ bytes_per_second: 1_000 });
    expect(teams.change('a', teamLimits(1_000))).toBe(false);
    expect(teams.change('a', teamLimits(1_000, 2_000))).toBe(true);
    expect(teams.ratesOf('a').egress?.version).not.toBe(first.egress?.version);
    expect(teams.change('a', UNLIMITED)).toBe(true);
    expect(teams.ratesOf('a')).toEqual({ egress: null, ingress: null });
  });

  it('count a slow limit as one byte a second, and 0 as nothing', () => {
    const teams = new Teams();
    const policy = { limit_value: 1, interval_ms: 60_000, burst_value: 100_000 };
    teams.change('a', { egress: policy, ingress: { ...policy, limit_value: 0 } });
    expect(teams.ratesOf('a').egress?.bytes_per_second).toBe(1);
    expect(teams.ratesOf('a').ingress?.bytes_per_second).toBe(0);
  });

  it('lend from the authority, and freely where there is none', async () => {
    const teams = new Teams();
    const authority = new LendingAuthority();
    const lender = teams.lender(authority);
    expect(await lender.reserve('a', 'egress', 500)).toEqual({ outcome: 'reserved', delay_ms: 0 });
    lender.giveBack('a', 'egress', 500);
    expect(authority.lent.egress).toBe(0);
    teams.change('a', teamLimits(1_000));
    await lender.reserve('a', 'egress', 500);
    lender.giveBack('a', 'egress', 200);
    expect(authority.lent).toEqual({ egress: 300, ingress: 0 });
    teams.forget('a');
    expect([teams.has('a'), teams.limitsOf('a')]).toEqual([false, UNLIMITED]);
  });
});
