import type { Clock } from '../base/clock.ts';
import type { SandboxState } from '../contract/sandboxes.ts';
import type { Dispatcher } from '../outbox/dispatcher.ts';
import type { OutboxClient } from '../outbox/sqlite/client.ts';
import type { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/thread/watcher.ts';
import type { Gauge } from './metrics.ts';

/** What the gauges are read from: a slice of the daemon. */
export interface GaugeSources {
  readonly clock: Clock;
  readonly state: SandboxState | 'starting';
  readonly store: Pick<OutboxClient, 'counts' | 'oldestPending'>;
  readonly dispatcher: Pick<Dispatcher, 'endpointHealth'> | null;
  readonly supervisor: Pick<Supervisor, 'list'>;
  readonly watcher: Pick<Watcher, 'status'> | null;
}

/** Reads the gauges of `/metrics`: outbox, endpoint, processes, watcher. */
export async function readGauges(daemon: GaugeSources): Promise<Gauge[]> {
  return [...(await outboxGauges(daemon)), ...(await processGauges(daemon)), ...watcherGauges(daemon)];
}

async function outboxGauges({ store, dispatcher, clock }: GaugeSources): Promise<Gauge[]> {
  const { bytes, ...states } = store.counts();
  const oldest_at_ms = await store.oldestPending().catch(() => null);
  const age_s = oldest_at_ms === null ? 0 : Math.max(0, clock.wallMs() - oldest_at_ms) / 1000;
  const healthy = dispatcher?.endpointHealth().healthy ?? true;
  return [
    {
      name: 'webhook_outbox_records',
      help: 'Records kept, by state.',
      samples: Object.entries(states).map(([state, value]) => ({ labels: { state }, value })),
    },
    gauge('webhook_outbox_bytes', 'Bytes of undelivered records.', bytes),
    gauge('webhook_outbox_oldest_pending_seconds', 'Age of the oldest pending record.', age_s),
    gauge('webhook_endpoint_healthy', '1 unless the endpoint is in backoff.', healthy ? 1 : 0),
  ];
}

async function processGauges(daemon: GaugeSources): Promise<Gauge[]> {
  const processes =
    daemon.state === 'running' || daemon.state === 'paused' ? await daemon.supervisor.list() : [];
  const states = ['running', 'paused', 'restarting', 'exited', 'crashed'];
  const samples = states.map((state) => ({
    labels: { state },
    value: processes.filter((process) => process.state === state).length,
  }));
  return [{ name: 'sandbox_processes', help: 'Supervised processes kept, by state.', samples }];
}

function watcherGauges({ watcher }: GaugeSources): Gauge[] {
  if (!watcher) return [];
  const { directories_watched, index_size, queued, degraded, reconciles } = watcher.status();
  return [
    gauge('watcher_directories_watched', 'Directories with a watch.', directories_watched),
    gauge('watcher_index_size', 'Known files and directories.', index_size),
    gauge('watcher_queued', 'Names waiting to be examined or stored.', queued),
    gauge('watcher_degraded', '1 if changes may be missed or are only found by rescans.', degraded ? 1 : 0),
    {
      name: 'watcher_reconciles',
      help: 'Rescans of the tree, by reason.',
      samples: Object.entries(reconciles).map(([reason, value]) => ({ labels: { reason }, value })),
    },
  ];
}

function gauge(name: string, help: string, value: number): Gauge {
  return { name, help, samples: [{ value }] };
}
