import type { OutboxCounts } from './deliveries.ts';
import type { ResourceUsage } from './events.ts';

/** Shapes of the sandbox routes. Source: contract section 4, rows `/sandbox…`, and section 7. */

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

/** The states of a sandbox as the manager keeps it. Source: contract section 7, GET `/api/v1/sandboxes/{id}`. */
export const MANAGED_STATUSES = ['starting', 'running', 'paused', 'terminating', 'failed'] as const;

export type ManagedStatus = (typeof MANAGED_STATUSES)[number];

/** What a sandbox leases, as given or defaulted: `{"memory":"512Mi","cpu":0.1}`. */
export interface SandboxResources {
  memory: string;
  cpu: number | string;
}

/** A sandbox's record. Times are RFC 3339 UTC with milliseconds, null where they are not set. */
export interface ManagedSandbox {
  id: string;
  template_id: string;
  team_id: string;
  status: ManagedStatus;
  paused: boolean;
  auto_resume: boolean;
  pod_name: string | null;
  /** Goes up by one at each resume. */
  runtime_generation: number;
  resources: SandboxResources;
  expires_at: string | null;
  hard_expires_at: string | null;
  claimed_at: string | null;
  created_at: string;
  updated_at: string;
}

/** Whether a text has the shape of an id that a manager gives: `sbx_` and a UUID. */
export function isSandboxId(text: string): boolean {
  return /^sbx_[0-9a-f-]{36}$/.test(text);
}

/** The name of a template. */
export const TEMPLATE = /^[A-Za-z0-9_.-]{1,64}$/;
