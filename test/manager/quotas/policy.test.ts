import { describe, expect, it } from 'vitest';
import { asDimension, asPolicies, asPolicy } from '../../../src/manager/quotas/policy.ts';

const RATE = { limit_value: 5, interval_ms: 1_000, burst_value: 5 };

describe('a policy', () => {
  it('of a rate has limit, interval and burst', () => {
    expect(asPolicy('sandbox_claims', RATE).value).toEqual({ dimension: 'sandbox_claims', ...RATE });
  });

  it('of a capacity has its limit alone; nulls are as good as absent', () => {
    const expected = {
      dimension: 'active_sandboxes',
      limit_value: 100,
      interval_ms: null,
      burst_value: null,
    };
    expect(asPolicy('active_sandboxes', { limit_value: 100 }).value).toEqual(expected);
    expect(asPolicy('active_sandboxes', { limit_value: 100, interval_ms: null }).value).toEqual(expected);
  });

  it.each([0, 1, Number.MAX_SAFE_INTEGER])('may limit to %d', (limit_value) => {
    expect(asPolicy('active_sandboxes', { limit_value }).value?.limit_value).toBe(limit_value);
    expect(asPolicy('api_requests', { ...RATE, limit_value }).value?.limit_value).toBe(limit_value);
  });

  it.each([
    ['limit_value', undefined],
    ['limit_value', null],
    ['limit_value', -1],
    ['limit_value', 0.5],
    ['limit_value', '5'],
    ['limit_value', Number.NaN],
    ['limit_value', Number.POSITIVE_INFINITY],
    ['limit_value', 2 ** 53],
    ['limit_value', true],
    ['limit_value', [5]],
    ['interval_ms', undefined],
    ['interval_ms', 0],
    ['interval_ms', 1.5],
    ['interval_ms', 2 ** 53],
    ['burst_value', undefined],
    ['burst_value', -1],
    ['burst_value', {}],
    ['limit', 5],
    ['kind', 'capacity'],
    ['kind', 'Rate'],
  ])('is refused for its %s of %j, by name', (field, value) => {
    expect(asPolicy('api_requests', { ...RATE, [field]: value }).fault?.field).toBe(field);
  });

  it.each(['interval_ms', 'burst_value'])('of a capacity takes no %s', (field) => {
    expect(asPolicy('active_sandboxes', { limit_value: 1, [field]: 1 }).fault?.field).toBe(field);
  });

  it('may say the kind of its dimension, and no other', () => {
    expect(asPolicy('sandbox_claims', { kind: 'rate', ...RATE }).value).toEqual(
      asPolicy('sandbox_claims', RATE).value,
    );
    expect(asPolicy('active_sandboxes', { kind: 'capacity', limit_value: 1 }).value?.limit_value).toBe(1);
    expect(asPolicy('active_sandboxes', { kind: 'rate', limit_value: 1 }).fault).toEqual({
      field: 'kind',
      problem: 'must be capacity for this dimension',
    });
    expect(asPolicies([{ dimension: 'sandbox_claims', kind: 'capacity', ...RATE }]).fault).toEqual({
      field: '[0].kind',
      problem: 'must be rate for this dimension (sandbox_claims)',
    });
  });

  it.each([null, undefined, 5, 'text', [RATE]])('is no %j', (given) => {
    expect(asPolicy('api_requests', given).fault?.field).toBe('body');
  });
});

describe('a dimension', () => {
  it.each([
    'active_sandboxes',
    'sandbox_claims',
    'api_requests',
    'network_egress_bytes',
    'network_ingress_bytes',
  ])('%s is known', (name) => expect(asDimension(name).value).toBe(name));

  it.each(['', 'Active_Sandboxes', 'cpu', '__proto__', 'constructor', 5, null])('%j is not', (name) => {
    expect(asDimension(name).fault?.problem).toContain('network_ingress_bytes');
  });
});

describe('the defaults of a region', () => {
  it("are the specification's example", () => {
    const example = [
      { dimension: 'active_sandboxes', limit_value: 100 },
      { dimension: 'sandbox_claims', ...RATE },
      {
        dimension: 'network_egress_bytes',
        limit_value: 12_500_000,
        interval_ms: 1_000,
        burst_value: 25_000_000,
      },
    ];
    expect(asPolicies(example).value?.map(({ dimension }) => dimension)).toEqual([
      'active_sandboxes',
      'sandbox_claims',
      'network_egress_bytes',
    ]);
    expect(asPolicies([]).value).toEqual([]);
  });

  it.each([
    ['[0].interval_ms', [{ dimension: 'sandbox_claims', limit_value: 5, burst_value: 5 }]],
    ['[0].burst_value', [{ dimension: 'sandbox_claims', limit_value: 5, interval_ms: 5 }]],
    [
      '[1].dimension',
      [
        { dimension: 'api_requests', ...RATE },
        { dimension: 'api_requests', ...RATE },
      ],
    ],
    ['[0].dimension', [{ limit_value: 5 }]],
    ['[0].dimension', [null]],
    ['[0].dimension', ['api_requests']],
    ['[0].colour', [{ dimension: 'api_requests', ...RATE, colour: 'red' }]],
    ['', { dimension: 'api_requests' }],
    ['', null],
  ])('are refused at %s', (field, given) => {
    expect(asPolicies(given).fault?.field).toBe(field);
  });
});
