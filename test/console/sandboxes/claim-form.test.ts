import { expect, it } from 'vitest';
import { claimOf, EMPTY_CLAIM } from '../../../src/console/sandboxes/claim-form.ts';
import { EVENT_TYPES } from '../../../src/contract/events.ts';

it('an empty form leaves everything to the manager', () => {
  expect(claimOf(EMPTY_CLAIM)).toEqual({ body: { config: {} }, faults: {} });
});

it('every option of the contract is in the claim', () => {
  const { body, faults } = claimOf({
    ...{ template: 'python', webhook_url: 'https://example.com/h', webhook_secret: 's', watch_dir: '/work' },
    ...{ watch_ignore: '**/a\n\n**/b', events: EVENT_TYPES.slice(0, 2), metadata: 'branch: main:x' },
    ...{ env_vars: 'A=1=2\nB=', ttl: '30m', hard_ttl: '2d', idle_ttl: '0', auto_resume: true, memory: '1Gi' },
    ...{ cpu: '0.5', disk: '2Gi', egress: '1000', ingress: '0', burst: '65536', network: 'block-all' },
    retries_any: true,
  });
  expect(faults).toEqual({});
  expect(body).toEqual({
    template: 'python',
    config: {
      webhook: {
        ...{ url: 'https://example.com/h', secret: 's', watch_dir: '/work', watch_ignore: ['**/a', '**/b'] },
        events: EVENT_TYPES.slice(0, 2),
        retry: 'any',
      },
      metadata: { branch: 'main:x' },
      env_vars: { A: '1=2', B: '' },
      ...{ ttl: 1_800, hard_ttl: 172_800, idle_ttl: 0, auto_resume: true },
      resources: { memory: '1Gi', cpu: 0.5, disk: '2Gi' },
      bandwidth: {
        egress_bandwidth_bytes_per_second: 1_000,
        ingress_bandwidth_bytes_per_second: 0,
        bandwidth_burst_bytes: 65_536,
      },
      network: { mode: 'block-all' },
    },
  });
});

it('what the manager would refuse is said by its field', () => {
  const { faults } = claimOf({
    ...EMPTY_CLAIM,
    ...{ template: 'a b', webhook_url: 'ftp://x', watch_dir: 'work', events: [], metadata: 'no colon' },
    ...{ env_vars: 'no equals', ttl: 'soon', memory: '1GB', cpu: 'many', egress: '-1' },
    ...{ disk: '127Mi', hard_ttl: '40000d', watch_ignore: '/', webhook_secret: 'x'.repeat(4_097) },
  });
  expect(Object.keys(faults).sort()).toEqual(
    [
      ...['template', 'webhook_url', 'watch_dir', 'events', 'metadata'],
      ...['env_vars', 'ttl', 'memory', 'cpu', 'egress'],
      ...['disk', 'hard_ttl', 'watch_ignore', 'webhook_secret'],
    ].sort(),
  );
});
