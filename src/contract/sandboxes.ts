import type { OutboxCounts, WebhookRetry } from './deliveries.ts';
import type { EventType, ResourceUsage } from './events.ts';
import type { NetworkUsage, SandboxBandwidth, SandboxNetworkView } from './network.ts';

/** Shapes of the sandbox routes. Contract section 4, "The sandbox", and section 7, "Sandboxes". */

/** The state of a sandbox as its daemon shows it; `awaiting_init` is a daemon of a warm pool. */
export type SandboxState = 'awaiting_init' | 'running' | 'paused' | 'stopping';

/** The state of the directory watch, in `GET /sandbox`, `/metrics` and `/readyz`. */
export interface WatcherStatus {
  watch_dir: string;
  /** `waiting`: the directory does not exist, or no longer does. */
  state: 'starting' | 'watching' | 'waiting' | 'stopped';
  directories_watched: number;
  /** Directories that are compared at intervals, because the kernel's limit on watches is reached. */
  directories_compared: number;
  /** Directories that cannot be read. */
  directories_unreadable: number;
  /** Known files and directories. */
  index_size: number;
  /** Names waiting to be examined or written. */
  queued: number;
  /** Events committed since the start. */
  events: number;
  /** Comparisons since the start, by reason: `start`, `resume`, `overflow`, `uncovered`, `root_replaced`. */
  reconciles: Record<string, number>;
  /** One sentence about what is lost or only compared at intervals; null where nothing is. */
  degraded: string | null;
}

/** The health of an endpoint. Contract section 3, "Endpoint down" and "Endpoint that refuses". */
export const ENDPOINT_HEALTHS = ['ok', 'backing_off', 'rejecting'] as const;

/** An endpoint as its deliveries show it. */
export interface EndpointView {
  health: (typeof ENDPOINT_HEALTHS)[number];
  /** RFC 3339 UTC; null unless it backs off, and while the probe is under way. */
  next_probe_at: string | null;
  /** The status of the latest refusal, and how many there were in a row; null unless it is rejecting. */
  refusals: { status: number; count: number } | null;
}

/** What `GET /sandbox` answers. */
export interface SandboxView {
  sandbox_id: string;
  team_id: string;
  state: SandboxState;
  version: string;
  uptime_ms: number;
  outbox: OutboxCounts;
  /** Null where no webhook is configured. */
  endpoint: EndpointView | null;
  /** Null where no directory is watched. */
  watcher: WatcherStatus | null;
  resource_usage: ResourceUsage;
}

/** The statuses of a sandbox in the manager. Contract section 7, "Sandboxes". */
export const MANAGED_STATUSES = ['starting', 'running', 'paused', 'terminating', 'failed'] as const;

/** One of `MANAGED_STATUSES`. */
export type ManagedStatus = (typeof MANAGED_STATUSES)[number];

/** What a sandbox leases, as given or by default: `{"memory":"512Mi","cpu":0.1,"disk":"10Gi"}`. */
export interface SandboxResources {
  memory: string;
  cpu: number | string;
  disk: string;
}

/** The bound on a sandbox's disk, in MiB, where neither its claim nor the size of the node's disk sets another. */
export const DISK_DEFAULT_MIB = 10 * 1024;

/** The webhook of a sandbox as the manager shows it. */
export interface ManagedWebhook {
  url: string;
  watch_dir: string | null;
  /** Globs. */
  watch_ignore: string[];
  /** The kinds that are sent, as given or all of them. */
  events: EventType[];
  retry: WebhookRetry;
  has_secret: boolean;
}

/**
 * What of a sandbox's files outlives what it runs in, and is in its forks.
 * - `root`: all of them
 * - `volume`: its working folder and its daemon's state; the rest of its root is the image's
 */
export const PERSISTENCES = ['root', 'volume'] as const;

/** One of `PERSISTENCES`. */
export type Persistence = (typeof PERSISTENCES)[number];

/** A sandbox as the manager shows it. Times are RFC 3339 UTC with milliseconds, null where they are not set. */
export interface ManagedSandbox {
  id: string;
  template_id: string;
  team_id: string;
  /** `deleted` only where deleted ones are asked for, for 24 h after the end of a deletion. */
  status: ManagedStatus | 'deleted';
  /** Why the status is `failed`, otherwise null. */
  failure: 'runtime_lost' | null;
  paused: boolean;
  auto_resume: boolean;
  /** In seconds; 0 is off. */
  idle_ttl: number;
  pod_name: string | null;
  /** The same as `pod_name`, under the name that newer clients read. */
  runtime_id: string | null;
  /** Null where it has no root of its own, and until it runs. */
  persistence: Persistence | null;
  /** Increases by 1 with each resume. */
  runtime_generation: number;
  resources: SandboxResources;
  /** As given or by default. */
  bandwidth: SandboxBandwidth;
  network: SandboxNetworkView;
  /** At most 10 s old in lists; null where its bytes are not counted. */
  network_usage: NetworkUsage | null;
  /** Null where none is configured; the secret itself is never shown. */
  webhook: ManagedWebhook | null;
  /** Labels given at the claim. */
  metadata: Record<string, string>;
  /** The names of `env_vars`, sorted; empty once the sandbox is deleted. */
  env_names: string[];
  expires_at: string | null;
  hard_expires_at: string | null;
  claimed_at: string | null;
  created_at: string;
  updated_at: string;
}

/** Whether a text has the form of a managed sandbox's id: `sbx_` and a UUID. */
export function isSandboxId(text: string): boolean {
  return /^sbx_[0-9a-f-]{36}$/.test(text);
}

/** Matches a valid template name. */
export const TEMPLATE = /^[A-Za-z0-9_.-]{1,64}$/;
