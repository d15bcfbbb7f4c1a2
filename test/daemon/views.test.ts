import { describe, expect, it } from 'vitest';
import { VERSION } from '../../src/base/version.ts';
import type { WatcherStatus } from '../../src/contract/sandboxes.ts';
import { readSandboxView, type ViewParts } from '../../src/daemon/views.ts';
import { startConsumer } from '../support/consumer.ts';
import { type Running, startDaemon } from '../support/daemon/running-daemon.ts';

const COUNTS = { pending: 1, delivered: 2, failed: 3, expired: 4, foreign: 5, bytes: 6 };
const BACKOFF = { healthy: false, next_probe_at: '2026-01-01T00:00:00.000Z' };
const USAGE = { cpu_ms: 1, memory_bytes: 2, processes: 3 };
const STATUS = { watch_dir: '/work', state: 'watching', queued: 4 } as WatcherStatus;

/** A daemon without a webhook that has just begun to start. */
const BARE: ViewParts = {
  identity: { sandbox_id: '', team_id: '' },
  state: 'starting',
  uptime_ms: 7,
  store: { counts: () => COUNTS },
  has_webhook: false,
  dispatcher: null,
  watcher: null,
  supervisor: null,
};

describe('the view of a sandbox', () => {
  it('shows every part that runs', async () => {
    const view = await readSandboxView({
      ...BARE,
      identity: { sandbox_id: 'sb-1', team_id: 'team-1' },
      state: 'paused',
      has_webhook: true,
      dispatcher: { endpointHealth: () => BACKOFF },
      watcher: { status: () => STATUS },
      supervisor: { usage: async () => USAGE },
    });
    expect(view).toEqual({
      sandbox_id: 'sb-1',
      team_id: 'team-1',
      state: 'paused',
      version: VERSION,
      uptime_ms: 7,
      outbox: COUNTS,
      endpoint: BACKOFF,
      watcher: STATUS,
      resource_usage: USAGE,
    });
  });

  it('shows a daemon that starts as running, with nothing in use', async () => {
    expect(await readSandboxView(BARE)).toMatchObject({
      state: 'running',
      watcher: null,
      resource_usage: { cpu_ms: 0, memory_bytes: 0, processes: 0 },
    });
  });

  it('has an endpoint only with a webhook, healthy until the delivery knows better', async () => {
    expect((await readSandboxView(BARE)).endpoint).toBeNull();
    expect((await readSandboxView({ ...BARE, has_webhook: true })).endpoint).toEqual({
      healthy: true,
      next_probe_at: null,
    });
  });
});

async function endpointOf(daemon: Running): Promise<unknown> {
  return (await daemon.call('GET', '/api/v1/sandbox')).json.data.endpoint;
}

describe('the endpoint of a running daemon', () => {
  it('is absent without a webhook', async () => {
    expect(await endpointOf(await startDaemon())).toBeNull();
  });

  it('is shown with a webhook', async () => {
    const { url } = await startConsumer();
    expect(await endpointOf(await startDaemon('--webhook-url', url))).toEqual({
      healthy: true,
      next_probe_at: null,
    });
  });

  it('is absent before the init, and shown after an init with a webhook', async () => {
    const { url } = await startConsumer();
    const daemon = await startDaemon('--await-init');
    expect(await endpointOf(daemon)).toBeNull();
    const body = JSON.stringify({ sandbox_id: 'sbx_1', team_id: 'team_1', webhook: { url } });
    expect((await daemon.call('POST', '/api/v1/sandbox/init', { body })).status).toBe(200);
    expect(await endpointOf(daemon)).toEqual({ healthy: true, next_probe_at: null });
  });
});
