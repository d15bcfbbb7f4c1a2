import { describe, expect, it } from 'vitest';
import { VERSION } from '../../src/base/version.ts';
import type { WatcherStatus } from '../../src/contract/sandboxes.ts';
import { readSandboxView, type ViewParts } from '../../src/daemon/views.ts';

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
