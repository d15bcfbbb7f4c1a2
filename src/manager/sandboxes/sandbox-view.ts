import { timestamp } from '../../base/clock.ts';
import { DISK_DEFAULT_MIB } from '../../contract/defaults.ts';
import { EVENT_TYPES } from '../../contract/events.ts';
import { sizeText } from '../../contract/limits.ts';
import type { ManagedSandbox, NetworkUsage, SandboxResources } from '../../contract/sandboxes.ts';
import type { Seal } from '../database/seal.ts';
import {
  envNamesOf,
  networkOf,
  ownBandwidth,
  retryClassOf,
  sentKindsOf,
  watchIgnoreOf,
} from './sandbox-row.ts';
import type { ListedSandboxRow, ManagedSandboxRow } from './sandbox-store.ts';

/** A row as the API shows it; `seal` opens the names of its variables. Source: contract section 7, GET `/api/v1/sandboxes/{id}`. */
export function sandboxView(
  row: ListedSandboxRow,
  seal: Seal,
  network_usage: NetworkUsage | null = null,
): ManagedSandbox {
  return {
    id: row.sandbox_id,
    template_id: row.template_id,
    team_id: row.team_id,
    status: statusOf(row),
    failure: row.status === 'failed' ? 'runtime_lost' : null,
    paused: row.status === 'paused',
    auto_resume: row.auto_resume === 1,
    idle_ttl: row.idle_ttl_s,
    pod_name: row.pod_name,
    runtime_id: row.pod_name,
    persistence: row.persistence,
    runtime_generation: row.runtime_generation,
    resources: resourcesOf(row),
    bandwidth: ownBandwidth(row),
    network: networkOf(row),
    network_usage,
    webhook: webhookView(row),
    metadata: JSON.parse(row.metadata ?? '{}'),
    env_names: envNamesOf(row, seal),
    expires_at: optionalTimestamp(row.expires_at_ms),
    hard_expires_at: optionalTimestamp(row.hard_expires_at_ms),
    claimed_at: optionalTimestamp(row.claimed_at_ms),
    created_at: timestamp(row.created_at_ms),
    updated_at: timestamp(row.updated_at_ms),
  };
}

/** A row as GET `…/{id}/status` shows it. */
export function statusView(row: ManagedSandboxRow) {
  const { sandbox_id, template_id, team_id, pod_name } = row;
  return {
    sandbox_id,
    template_id,
    team_id,
    pod_name,
    runtime_id: pod_name,
    status: row.status,
    claimed_at: optionalTimestamp(row.claimed_at_ms),
    expires_at: optionalTimestamp(row.expires_at_ms),
    hard_expires_at: optionalTimestamp(row.hard_expires_at_ms),
    created_at: timestamp(row.created_at_ms),
  };
}

/** `deleted` once the cleanup is complete. */
function statusOf({ status, deleted_at_ms }: ListedSandboxRow): ManagedSandbox['status'] {
  return deleted_at_ms === null ? status : 'deleted';
}

function resourcesOf({ resources }: ListedSandboxRow): SandboxResources {
  const { memory, cpu, disk = sizeText(DISK_DEFAULT_MIB) } = JSON.parse(resources);
  return { memory, cpu, disk };
}

function webhookView(row: ListedSandboxRow): ManagedSandbox['webhook'] {
  const { webhook_url, watch_dir, webhook_secret_sealed } = row;
  if (webhook_url === null) return null;
  return {
    url: webhook_url,
    watch_dir,
    watch_ignore: watchIgnoreOf(row),
    events: sentKindsOf(row) ?? [...EVENT_TYPES],
    retry: retryClassOf(row),
    has_secret: webhook_secret_sealed !== null,
  };
}

/** A wall time in ms as an RFC 3339 timestamp; null if there is none. */
export function optionalTimestamp(wall_ms: number | null): string | null {
  return wall_ms === null ? null : timestamp(wall_ms);
}
