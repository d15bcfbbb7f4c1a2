import type { Clock } from '../base/clock.ts';
import { gauge, labelledCounter, labelledGauge, type Metric } from '../base/metrics.ts';
import type { SandboxState } from '../contract/sandboxes.ts';
import type { Dispatcher } from '../outbox/dispatcher.ts';
import type { OutboxClient } from '../outbox/sqlite/client.ts';
import type { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/thread/watcher.ts';

const PROCESS_STATES = ['running', 'paused', 'restarting', 'exited', 'crashed'];

/** What the gauges are read from: a slice of the daemon. */
export interface GaugeSources {
  readonly clock: Clock;
  readonly state: SandboxState | 'starting';
  readonly store: Pick<OutboxClient, 'counts' | 'oldestPending'>;
  readonly dispatcher: Pick<Dispatcher, 'endpointHealth'> | null;
  readonly supervisor: Pick<Supervisor, 'list'>;
  readonly watcher: Pick<Watcher, 'status'> | null;
}

/** The gauges of `/metrics`: outbox, endpoint, processes, and the watcher where there is one. */
export function daemonGauges(daemon: GaugeSources): Metric[] {
  return [...outboxGauges(daemon), processGauge(daemon), ...watcherGauges(daemon)];
}

function outboxGauges({ store, dispatcher, clock }: GaugeSources): Metric[] {
  const states = () => {
    const { bytes: _bytes, ...records } = store.counts();
    return records;
  };
  const age_s = async () => {
    const oldest_at_ms = await store.oldestPending().catch(() => null);
    return oldest_at_ms === null ? 0 : Math.max(0, clock.wallMs() - oldest_at_ms) / 1000;
  };
  const is_healthy = () => ((dispatcher?.endpointHealth().healthy ?? true) ? 1 : 0);
  return [
    labelledGauge('outbox_records', 'Records kept, by state.', 'state', states),
    gauge('outbox_bytes', 'Bytes of undelivered records.', () => store.counts().bytes),
    gauge('outbox_oldest_pending_seconds', 'Age of the oldest pending record.', age_s),
    gauge('endpoint_healthy', '1 unless the endpoint is in backoff.', is_healthy),
  ];
}

function processGauge(daemon: GaugeSources): Metric {
  const states = async () => {
    const is_up = daemon.state === 'running' || daemon.state === 'paused';
    const processes = is_up ? await daemon.supervisor.list() : [];
    return Object.fromEntries(
      PROCESS_STATES.map((state) => [state, processes.filter((each) => each.state === state).length]),
    );
  };
  return labelledGauge('processes', 'Supervised processes kept, by state.', 'state', states);
}

function watcherGauges({ watcher }: GaugeSources): Metric[] {
  if (!watcher) return [];
  const { directories_watched, index_size, queued, degraded, reconciles } = watcher.status();
  return [
    gauge('watcher_directories_watched', 'Directories with a watch.', () => directories_watched),
    gauge('watcher_index_size', 'Known files and directories.', () => index_size),
    gauge('watcher_queued', 'Names waiting to be examined or stored.', () => queued),
    gauge('watcher_degraded', '1 if changes may be missed or are only found by rescans.', () =>
      degraded ? 1 : 0,
    ),
    labelledCounter('watcher_reconciles_total', 'Rescans of the tree, by reason.', 'reason', () => ({
      ...reconciles,
    })),
  ];
}
