import { describe, expect, it } from 'vitest';
import { ATTEMPT_TIMEOUT_MS, OUTBOX_LEASE_MS } from '../../../src/contract/defaults.ts';
import type { EndpointStore } from '../../../src/manager/outbox/endpoint-store.ts';
import { ReplicaLease } from '../../../src/manager/outbox/replica-lease.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A lease on a store that renews as `is_kept` says, and a log of what happened. */
function leased() {
  const calls: string[] = [];
  const state = { is_kept: true };
  const store = {
    async renew() {
      calls.push('renew');
      return state.is_kept;
    },
    async register() {
      calls.push('register');
    },
  } as unknown as EndpointStore;
  const clock = new ManualClock();
  const lease = new ReplicaLease(store, clock, {
    onLost: async () => void calls.push('lost'),
    onRenewed: () => void calls.push('renewed'),
  });
  return { lease, clock, calls, state };
}

describe('the lease of a replica', () => {
  it('is registered first, and allows no attempt before', async () => {
    const { lease, calls } = leased();
    expect(lease.allowsAttempt()).toBe(false);
    await lease.poll(false);
    expect(calls).toEqual(['lost', 'register', 'renewed']);
    expect(lease.allowsAttempt()).toBe(true);
  });

  it('allows no attempt that could outlive it', async () => {
    const { lease, clock } = leased();
    await lease.renew();
    await clock.advance(OUTBOX_LEASE_MS - ATTEMPT_TIMEOUT_MS - 1_001);
    expect(lease.allowsAttempt()).toBe(true);
    await clock.advance(1);
    expect(lease.allowsAttempt()).toBe(false);
    await lease.renew();
    expect(lease.allowsAttempt()).toBe(true);
  });

  it('is renewed at every poll while endpoints are owned, otherwise every 8 s', async () => {
    const { lease, clock, calls } = leased();
    await lease.renew();
    calls.length = 0;
    await lease.poll(true);
    await lease.poll(false);
    await clock.advance(7_999);
    await lease.poll(false);
    expect(calls).toEqual(['renew', 'renewed']);
    await clock.advance(1);
    await lease.poll(false);
    expect(calls).toEqual(['renew', 'renewed', 'renew', 'renewed']);
  });

  it('is registered again, after everything owned was dropped, where another replica removed it', async () => {
    const { lease, calls, state } = leased();
    await lease.renew();
    calls.length = 0;
    state.is_kept = false;
    await lease.renew();
    expect(calls).toEqual(['renew', 'lost', 'register', 'renewed']);
  });
});
