import { describe, expect, it } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { VERSION } from '../../../src/base/version.ts';
import { DAEMON_ROUTES } from '../../../src/contract/routes/daemon.ts';
import { FEATURES } from '../../../src/contract/versions.ts';
import { daemonHealthHandlers, type HealthContext } from '../../../src/daemon/api/health-routes.ts';
import { Metrics } from '../../../src/daemon/metrics.ts';
import { startingError } from '../../../src/daemon/start-gate.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { serveSome } from '../../support/serve-some.ts';

const COUNTS = { pending: 1, delivered: 0, failed: 0, expired: 0, foreign: 0, bytes: 10 };
const log = createLog('silent');

/** The routes of a running daemon with these differences; answers as status, type and body. */
function served(changes: Partial<HealthContext> = {}) {
  const app = createHttpApp(log);
  const context = {
    clock: new ManualClock(),
    state: 'running',
    store: { counts: () => COUNTS, oldestPending: async () => null },
    dispatcher: null,
    supervisor: { counts: () => ({ running: 0, paused: 0, exited: 0, crashed: 0, restarting: 0 }) },
    watcher: null,
    metrics: new Metrics(),
    outbox_trouble: null,
    outbox_damages: [],
  } satisfies HealthContext;
  const whole = Object.defineProperties(context, Object.getOwnPropertyDescriptors(changes));
  const ready = serveSome(app, DAEMON_ROUTES, daemonHealthHandlers(whole));
  return async (url: string) => {
    await ready;
    const { statusCode, headers, body } = await app.inject(url);
    return { status: statusCode, type: headers['content-type'], body };
  };
}

describe('GET /healthz', () => {
  it('is answered whatever the daemon can do', async () => {
    const { status, body } = await served({ state: 'starting' })('/healthz');
    expect([status, JSON.parse(body)]).toEqual([
      200,
      { success: true, data: { alive: true, version: VERSION, features: FEATURES } },
    ]);
  });
});

describe('GET /readyz', () => {
  it('is 200 while the daemon is ready', async () => {
    const { status, body } = await served()('/readyz');
    expect([status, JSON.parse(body)]).toEqual([200, { success: true, data: { ready: true } }]);
  });

  it('is 200 with the reasons while the daemon is degraded', async () => {
    const { status, body } = await served({ outbox_damages: ['a record is missing'] })('/readyz');
    expect([status, JSON.parse(body).data]).toEqual([
      200,
      { ready: true, degraded: ['a record is missing'] },
    ]);
  });

  it.each([
    ['starting', 'outbox_unavailable', 'the outbox cannot be written: no space left'],
    ['running', 'outbox_unavailable', 'the outbox cannot be written: no space left'],
    ['stopping', 'shutting_down', 'the daemon is shutting down'],
  ] as const)(
    'is 503 with the reason while a daemon that is %s is not ready',
    async (state, code, message) => {
      const { status, body } = await served({ state, outbox_trouble: 'no space left' })('/readyz');
      expect([status, JSON.parse(body)]).toEqual([503, { success: false, error: { code, message } }]);
    },
  );
});

describe('GET /metrics', () => {
  it("is Prometheus' text format", async () => {
    const { status, type, body } = await served()('/metrics');
    expect([status, type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(body).toContain('sandboxd_outbox_records{state="pending"} 1\n');
  });

  it('is 503 until the outbox is open', async () => {
    const unopened = Object.defineProperty({}, 'store', {
      get: () => {
        throw startingError();
      },
    });
    const { status, body } = await served(unopened)('/metrics');
    expect([status, JSON.parse(body).error.code]).toEqual([503, 'outbox_unavailable']);
  });
});
