import type { SandboxView } from '../contract/sandboxes.ts';

/** What readiness depends on. */
export interface ReadinessFacts {
  state: string;
  /** What was found damaged or missing in the state directory, one line each. */
  outbox_damages: readonly string[];
  /** Why the outbox cannot be written; null if it can. */
  outbox_trouble: string | null;
  /** Why file events may be missing or late; null if they are not. */
  watcher_degraded: string | null;
  /** Null without a webhook. */
  endpoint: SandboxView['endpoint'];
}

const NOT_READY: Record<string, string> = {
  starting: 'the daemon is starting',
  awaiting_init: 'the sandbox is waiting for POST /sandbox/init',
};

const STOPPING = 'the daemon is shutting down';

/** The answer to a readiness check. */
export interface DaemonReadiness {
  /** Why the daemon is not ready; null if it is. */
  not_ready: string | null;
  /** What is lost or works with limits, one line each. */
  degraded: string[];
}

/** Judges readiness. Source: contract section 4, `/readyz`. */
export function readiness(facts: ReadinessFacts): DaemonReadiness {
  const { outbox_trouble, outbox_damages, watcher_degraded } = facts;
  const trouble = outbox_trouble === null ? null : `the outbox cannot be written: ${outbox_trouble}`;
  return {
    not_ready: facts.state === 'stopping' ? STOPPING : (trouble ?? NOT_READY[facts.state] ?? null),
    degraded: [...outbox_damages, watcher_degraded, endpointDegraded(facts.endpoint)].filter(
      (reason) => reason !== null,
    ),
  };
}

function endpointDegraded(endpoint: SandboxView['endpoint']): string | null {
  if (endpoint === null || endpoint.healthy) return null;
  const { next_probe_at } = endpoint;
  const next = next_probe_at === null ? '' : `, next attempt at ${next_probe_at}`;
  return `the webhook endpoint is in backoff${next}`;
}
