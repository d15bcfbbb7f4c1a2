import { describe, expect, it } from 'vitest';
import type { EndpointView } from '../../../src/contract/deliveries.ts';
import type { WatcherStatus } from '../../../src/contract/sandbox.ts';
import { type ReadinessContext, readiness } from '../../../src/daemon/api/health-routes.ts';

const FINE: ReadinessContext = {
  state: 'running',
  outbox_damages: [],
  outbox_trouble: null,
  watcher: null,
  dispatcher: null,
};

const UP: EndpointView = { health: 'ok', next_probe_at: null, refusals: null };

describe('readiness', () => {
  it.each(['running', 'paused'] as const)('is given while the sandbox is %s', (state) => {
    expect(readiness({ ...FINE, state })).toEqual({ not_ready: null, degraded: [] });
  });

  it.each([
    ['starting', 'the daemon is starting'],
    ['awaiting_init', 'the sandbox is waiting for POST /sandbox/init'],
    ['stopping', 'the daemon is shutting down'],
  ] as const)('is denied while the sandbox is %s', (state, reason) => {
    expect(readiness({ ...FINE, state }).not_ready).toBe(reason);
  });

  it('is denied while the outbox cannot be written, unless the daemon is shutting down', () => {
    const trouble = { ...FINE, outbox_trouble: 'no space left' };
    expect(readiness(trouble).not_ready).toBe('the outbox cannot be written: no space left');
    expect(readiness({ ...trouble, state: 'starting' }).not_ready).toContain('no space left');
    expect(readiness({ ...trouble, state: 'stopping' }).not_ready).toBe('the daemon is shutting down');
  });

  it('is not denied while the endpoint is in backoff or rejecting, which is listed with the next attempt or the status', () => {
    const degradedBy = (endpoint: Partial<EndpointView>) =>
      readiness({ ...FINE, dispatcher: { endpointHealth: () => ({ ...UP, ...endpoint }) } });
    const next_probe_at = '2026-01-01T00:00:00.000Z';
    expect(degradedBy({})).toEqual({ not_ready: null, degraded: [] });
    expect(degradedBy({ health: 'backing_off', next_probe_at })).toEqual({
      not_ready: null,
      degraded: ['the webhook endpoint is in backoff, next attempt at 2026-01-01T00:00:00.000Z'],
    });
    expect(degradedBy({ health: 'backing_off' }).degraded).toEqual(['the webhook endpoint is in backoff']);
    const refusals = { status: 401, count: 7 };
    expect(degradedBy({ health: 'rejecting', refusals }).degraded).toEqual([
      'the webhook endpoint is rejecting: it refused the last 7 attempts, with 401',
    ]);
  });

  it('is not denied by damage or a degraded watch, which are listed', () => {
    const watcher = { status: () => ({ degraded: 'no watches left' }) as WatcherStatus };
    expect(readiness({ ...FINE, outbox_damages: ['a record is missing'], watcher })).toEqual({
      not_ready: null,
      degraded: ['a record is missing', 'no watches left'],
    });
  });
});
