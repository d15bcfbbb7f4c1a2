import type { Clock } from '../../base/clock.ts';
import { gauge, labelledCounter, labelledGauge, type Metric } from '../../base/metrics.ts';
import { VERSION } from '../../base/version.ts';
import type { EndpointView } from '../../contract/deliveries.ts';
import { ApiError } from '../../contract/errors.ts';
import type { SandboxState } from '../../contract/sandbox.ts';
import { FEATURES } from '../../contract/versions.ts';
import { PROCESS_STATES } from '../../contract/words.ts';
import type { Dispatcher } from '../../outbox/dispatcher.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { Supervisor } from '../../process/supervisor.ts';
import type { Watcher } from '../../watch/thread/watcher.ts';
import type { Metrics } from '../metrics.ts';
import type { DaemonHandlers } from './handlers.ts';

/** The slice of the daemon that readiness depends on. */
export interface ReadinessContext {
  readonly state: SandboxState | 'starting';
  /** Why the outbox cannot be written; null if it can. */
  readonly outbox_trouble: string | null;
  /** What was found damaged or missing in the state directory, one line each. */
  readonly outbox_damages: readonly string[];
  /** Null without a webhook. */
  readonly dispatcher: Pick<Dispatcher, 'endpointHealth'> | null;
  readonly watcher: Pick<Watcher, 'status'> | null;
}

/** The slice of the daemon that the gauges are read from. */
export interface GaugeContext {
  readonly clock: Clock;
  readonly state: SandboxState | 'starting';
  readonly store: Pick<OutboxClient, 'counts' | 'oldestPending'>;
  readonly dispatcher: Pick<Dispatcher, 'endpointHealth'> | null;
  readonly supervisor: Pick<Supervisor, 'counts'>;
  readonly watcher: Pick<Watcher, 'status'> | null;
}

/** The slice of the daemon that health and metrics use. */
export interface HealthContext extends ReadinessContext, GaugeContext {
  readonly metrics: Pick<Metrics, 'text' | 'requests'>;
}

const NOT_READY: Record<string, string> = {
  starting: 'the daemon is starting',
  awaiting_init: 'the sandbox is waiting for POST /sandbox/init',
};
const STOPPING = 'the daemon is shutting down';
const NO_PROCESSES = Object.fromEntries(PROCESS_STATES.map((state) => [state, 0]));

/** The handlers of liveness, readiness and metrics. Contract section 4. */
export function daemonHealthHandlers(daemon: HealthContext) {
  return {
    async getHealth() {
      return { alive: true, version: VERSION, features: [...FEATURES] };
    },

    async getReadiness() {
      const { not_ready, degraded } = readiness(daemon);
      if (not_ready !== null) {
        throw new ApiError(daemon.state === 'stopping' ? 'shutting_down' : 'outbox_unavailable', not_ready);
      }
      return { ready: true, ...(degraded.length > 0 ? { degraded } : {}) };
    },

    async getMetrics({ reply }) {
      reply.type('text/plain; version=0.0.4; charset=utf-8');
      return daemon.metrics.text(daemonGauges(daemon));
    },
  } satisfies Partial<DaemonHandlers>;
}

/**
 * Judges readiness. `not_ready`: why the daemon is not ready, null if it is; `degraded`: what is lost or works with
 * limits, one line each. Source: contract section 4, `/readyz`.
 */
export function readiness({ state, outbox_trouble, outbox_damages, watcher, dispatcher }: ReadinessContext): {
  not_ready: string | null;
  degraded: string[];
} {
  const trouble = outbox_trouble === null ? null : `the outbox cannot be written: ${outbox_trouble}`;
  const watcher_degraded = watcher?.status().degraded ?? null;
  return {
    not_ready: state === 'stopping' ? STOPPING : (trouble ?? NOT_READY[state] ?? null),
    degraded: [...outbox_damages, watcher_degraded, endpointDegraded(dispatcher)].filter(
      (reason) => reason !== null,
    ),
  };
}

function endpointDegraded(dispatcher: HealthContext['dispatcher']): string | null {
  if (dispatcher === null) return null;
  const { health, next_probe_at, refusals } = dispatcher.endpointHealth();
  if (refusals !== null) {
    return `the webhook endpoint is rejecting: it refused the last ${refusals.count} attempts, with ${refusals.status}`;
  }
  if (health === 'ok') return null;
  const next = next_probe_at === null ? '' : `, next attempt at ${next_probe_at}`;
  return `the webhook endpoint is in backoff${next}`;
}

/** The gauges of `/metrics`: outbox, endpoint, processes, and the watcher where there is one. */
export function daemonGauges(daemon: GaugeContext): Metric[] {
  return [...outboxGauges(daemon), processGauge(daemon), ...watcherGauges(daemon)];
}

function outboxGauges({ store, dispatcher, clock }: GaugeContext): Metric[] {
  const states = () => {
    const { bytes: _bytes, ...records } = store.counts();
    return records;
  };
  const age_s = async () => {
    const oldest_at_ms = await store.oldestPending();
    return oldest_at_ms === null ? 0 : Math.max(0, clock.wallMs() - oldest_at_ms) / 1000;
  };
  const is = (health: EndpointView['health']) => (dispatcher?.endpointHealth().health ?? 'ok') === health;
  return [
    labelledGauge('outbox_records', 'Records kept, by state.', 'state', states),
    gauge('outbox_bytes', 'Bytes of undelivered records.', () => store.counts().bytes),
    gauge('outbox_oldest_pending_seconds', 'Age of the oldest pending record.', age_s),
    gauge('endpoint_healthy', '1 unless the endpoint is in backoff or rejecting.', () => (is('ok') ? 1 : 0)),
    gauge('endpoint_rejecting', '1 if the endpoint refuses every event.', () => (is('rejecting') ? 1 : 0)),
  ];
}

function processGauge(daemon: GaugeContext): Metric {
  const states = () => {
    const is_up = daemon.state === 'running' || daemon.state === 'paused';
    return is_up ? daemon.supervisor.counts() : NO_PROCESSES;
  };
  return labelledGauge('processes', 'Supervised processes kept, by state.', 'state', states);
}

function watcherGauges({ watcher }: GaugeContext): Metric[] {
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
