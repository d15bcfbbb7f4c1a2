import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { MetricsRegistry } from '../../../src/base/metrics.ts';
import type { EndpointView } from '../../../src/contract/deliveries.ts';
import type { WatcherStatus } from '../../../src/contract/sandbox.ts';
import { daemonGauges, type GaugeContext } from '../../../src/daemon/api/health-routes.ts';
import { draft } from '../../support/in-process-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openClient } from '../../support/outbox/open-client.ts';

const NONE = { running: 0, paused: 0, exited: 0, crashed: 0, restarting: 0 };
const NO_PROCESSES = { counts: () => NONE };

const processes = (counts: Partial<typeof NONE>) => ({ counts: () => ({ ...NONE, ...counts }) });

/** A running daemon over a real outbox, with what a test changes of it. */
async function sources(changes: Partial<GaugeContext> = {}) {
  const { store } = await openClient(systemClock);
  const daemon: GaugeContext = {
    clock: systemClock,
    state: 'running',
    store,
    dispatcher: null,
    supervisor: NO_PROCESSES,
    watcher: null,
    ...changes,
  };
  return { store, daemon };
}

/** The samples of a scrape, without comments. */
async function scraped(daemon: GaugeContext): Promise<string[]> {
  const registry = new MetricsRegistry();
  registry.add(daemonGauges(daemon));
  return (await registry.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

describe('the gauges of /metrics', () => {
  it('count the records by state, their bytes, and the age of the oldest that is pending', async () => {
    const { store, daemon } = await sources();
    await store.append({ drafts: [draft('{"a":1}'), draft('{"a":2}')] });
    const clock = new ManualClock(((await store.oldestPending()) as number) + 90_000);
    const { bytes } = store.counts();
    expect(bytes).toBeGreaterThan(0);
    expect(await scraped({ ...daemon, clock })).toEqual(
      expect.arrayContaining([
        'outbox_records{state="pending"} 2',
        'outbox_records{state="delivered"} 0',
        `outbox_bytes ${bytes}`,
        'outbox_oldest_pending_seconds 90',
      ]),
    );
  });

  it('show an age of 0 for an empty outbox', async () => {
    const { daemon } = await sources();
    expect(await scraped(daemon)).toContain('outbox_oldest_pending_seconds 0');
  });

  it('show an endpoint in backoff or rejecting, and one as healthy while there is none', async () => {
    const { daemon } = await sources();
    expect(await scraped(daemon)).toContain('endpoint_healthy 1');
    const as = (health: EndpointView['health']) =>
      scraped({
        ...daemon,
        dispatcher: { endpointHealth: () => ({ health, next_probe_at: null, refusals: null }) },
      });
    expect(await as('backing_off')).toEqual(
      expect.arrayContaining(['endpoint_healthy 0', 'endpoint_rejecting 0']),
    );
    expect(await as('rejecting')).toEqual(
      expect.arrayContaining(['endpoint_healthy 0', 'endpoint_rejecting 1']),
    );
  });

  it('count the processes by state, and none before the sandbox runs', async () => {
    const supervisor = processes({ running: 2, exited: 1 });
    const { daemon } = await sources({ supervisor });
    for (const state of ['running', 'paused'] as const) {
      expect(await scraped({ ...daemon, state })).toEqual(
        expect.arrayContaining([
          'processes{state="running"} 2',
          'processes{state="exited"} 1',
          'processes{state="crashed"} 0',
        ]),
      );
    }
    const early = await scraped({ ...daemon, state: 'awaiting_init' });
    expect(early).toContain('processes{state="running"} 0');
  });

  it('describe the directory watch where there is one', async () => {
    const { daemon } = await sources();
    expect((await scraped(daemon)).join()).not.toContain('watcher_');
    const status = {
      directories_watched: 3,
      index_size: 40,
      queued: 5,
      degraded: 'no watches left',
      reconciles: { start: 1, overflow: 2 },
    } as unknown as WatcherStatus;
    expect(await scraped({ ...daemon, watcher: { status: () => status } })).toEqual(
      expect.arrayContaining([
        'watcher_directories_watched 3',
        'watcher_index_size 40',
        'watcher_queued 5',
        'watcher_degraded 1',
        'watcher_reconciles_total{reason="start"} 1',
        'watcher_reconciles_total{reason="overflow"} 2',
      ]),
    );
  });
});
