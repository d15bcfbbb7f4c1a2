import { describe, expect, it } from 'vitest';
import type { Dimension, RatePolicy } from '../../../src/contract/quotas.ts';
import { draw, fullBucket } from '../../../src/manager/quotas/bucket.ts';
import { drawn } from '../../../src/manager/quotas/rate-authority.ts';
import { rateLimitHeaders } from '../../../src/manager/quotas/rate-limit-headers.ts';

function charged(dimension: Dimension, policy: RatePolicy, tokens = policy.burst_value) {
  const { bucket, is_admitted } = draw({ ...fullBucket(policy, 0), tokens }, policy, 1, 0);
  return { dimension, policy, drawn: drawn(bucket, is_admitted, 1) };
}

describe('rate limit headers', () => {
  it('tell quota, window, what is left and when more is there', () => {
    const policy = { limit_value: 100, interval_ms: 1_000, burst_value: 100 };
    expect(rateLimitHeaders([charged('api_requests', policy)])).toEqual({
      'ratelimit-policy': '"api_requests";q=100;w=1',
      ratelimit: '"api_requests";r=99;t=1',
    });
  });

  it('list every rate that a request is charged against', () => {
    const api = { limit_value: 1, interval_ms: 60_000, burst_value: 2 };
    const claims = { limit_value: 5, interval_ms: 1_500, burst_value: 5 };
    expect(rateLimitHeaders([charged('api_requests', api, 0), charged('sandbox_claims', claims)])).toEqual({
      'ratelimit-policy': '"api_requests";q=1;w=60, "sandbox_claims";q=5;w=2',
      ratelimit: '"api_requests";r=0;t=60, "sandbox_claims";r=4;t=1',
    });
  });

  it('say nothing where nothing is limited', () => {
    expect(rateLimitHeaders([])).toEqual({});
  });

  it('stay within what a structured field can hold', () => {
    const policy = { limit_value: 2 ** 53 - 1, interval_ms: 1, burst_value: 2 ** 53 - 1 };
    expect(rateLimitHeaders([charged('api_requests', policy)])['ratelimit-policy']).toBe(
      '"api_requests";q=999999999999999;w=1',
    );
  });
});
