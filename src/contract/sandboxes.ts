import type { OutboxCounts } from './deliveries.ts';
import type { ResourceUsage } from './events.ts';

/** Shapes of the sandbox routes. Source: contract section 4, rows `/sandbox…`. */

export type SandboxState = 'awaiting_init' | 'running' | 'paused' | 'stopping';

export interface SandboxView {
  sandbox_id: string;
  team_id: string;
  state: SandboxState;
  version: string;
  uptime_ms: number;
  outbox: OutboxCounts;
  endpoint: { healthy: boolean; next_probe_at: string | null };
  /** What the watcher tells of itself; null without a watched folder. */
  watcher: object | null;
  resource_usage: ResourceUsage;
}
