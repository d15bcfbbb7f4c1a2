import { VERSION } from '../base/version.ts';
import type { SandboxState, SandboxView } from '../contract/sandboxes.ts';
import type { Dispatcher } from '../outbox/dispatcher.ts';
import type { OutboxClient } from '../outbox/sqlite/client.ts';
import type { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/thread/watcher.ts';

/** What the view of a sandbox is read from. */
export interface ViewParts {
  identity: { sandbox_id: string; team_id: string };
  state: SandboxState | 'starting';
  uptime_ms: number;
  store: Pick<OutboxClient, 'counts'>;
  /** Whether a webhook is configured, also before its dispatcher exists. */
  has_webhook: boolean;
  dispatcher: Pick<Dispatcher, 'endpointHealth'> | null;
  watcher: Pick<Watcher, 'status'> | null;
  supervisor: Pick<Supervisor, 'usage'> | null;
}

/** Reads the answer of `GET /sandbox`. Source: contract section 4. */
export async function readSandboxView(parts: ViewParts): Promise<SandboxView> {
  const { identity, state, uptime_ms, store, has_webhook, dispatcher, watcher, supervisor } = parts;
  const healthy = { healthy: true, next_probe_at: null };
  return {
    ...identity,
    state: state === 'starting' ? 'running' : state,
    version: VERSION,
    uptime_ms,
    outbox: store.counts(),
    endpoint: dispatcher?.endpointHealth() ?? (has_webhook ? healthy : null),
    watcher: watcher?.status() ?? null,
    resource_usage: (await supervisor?.usage()) ?? { cpu_ms: 0, memory_bytes: 0, processes: 0 },
  };
}
