import { describe, expect, it } from 'vitest';
import { meteredDirections, ownLimits, sameLimits } from '../../src/network/attachment.ts';
import { bandwidth, teamLimits, UNLIMITED } from '../support/network/test-node.ts';

describe('what limits a sandbox', () => {
  it('is its own bandwidth, of which 0 is none', () => {
    expect(ownLimits({ ...bandwidth(0, 5), ingress_bandwidth_bytes_per_second: 7 })).toEqual({
      egress: null,
      ingress: { bytes_per_second: 7, burst_bytes: 5 },
    });
  });

  it('is metered in the directions that it or its team limits, a limit of 0 too', () => {
    expect(meteredDirections(bandwidth(0), UNLIMITED)).toEqual({ egress: false, ingress: false });
    expect(meteredDirections(bandwidth(1), UNLIMITED)).toEqual({ egress: true, ingress: true });
    const blocked = { ...UNLIMITED, ingress: teamLimits(0).ingress };
    expect(meteredDirections(bandwidth(0), blocked)).toEqual({ egress: false, ingress: true });
  });

  it('is compared by every number of a policy', () => {
    expect(sameLimits(teamLimits(5), teamLimits(5))).toBe(true);
    expect(sameLimits(teamLimits(5), teamLimits(5, 6))).toBe(false);
    expect(sameLimits(teamLimits(5), { ...teamLimits(5), egress: null })).toBe(false);
    expect(sameLimits(UNLIMITED, { egress: null, ingress: null })).toBe(true);
  });
});
