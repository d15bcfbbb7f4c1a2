import type { OutboxCounts } from './deliveries.ts';
import type { ResourceUsage } from './events.ts';

/** Shapes of the sandbox routes. Source: contract section 4, rows `/sandbox…`. */

export type SandboxState = 'awaiting_init' | 'running' | 'paused' | 'stopping';

/** The state of the watch, for `GET /sandbox`, `/metrics` and `/readyz`. */
export interface WatcherStatus {
  watch_dir: string;
  /** `waiting`: there is no such directory yet, or no more. */
  state: 'starting' | 'watching' | 'waiting' | 'stopped';
  directories_watched: number;
  /** Directories that are compared at intervals, because the kernel grants them no watch. */
  directories_compared: number;
  /** Directories that cannot be read. */
  directories_unreadable: number;
  /** Known files and directories. */
  index_size: number;
  /** Names that wait to be looked at or written. */
  queued: number;
  /** Events committed since the start. */
  events: number;
  /** Comparisons since the start, by reason: `start`, `resume`, `overflow`, `uncovered`, `root_replaced`. */
  reconciles: Record<string, number>;
  /** What is lost or only compared at intervals, in one sentence; null where nothing is. */
  degraded: string | null;
}

export interface SandboxView {
  sandbox_id: string;
  team_id: string;
  state: SandboxState;
  version: string;
  uptime_ms: number;
  outbox: OutboxCounts;
  endpoint: { healthy: boolean; next_probe_at: string | null };
  /** What the watcher tells of itself; null without a watched folder. */
  watcher: WatcherStatus | null;
  resource_usage: ResourceUsage;
}
