import { timestamp } from '../../base/clock.ts';
import type { ManagedSandbox } from '../../contract/sandboxes.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';

/** A row as the API shows it. Source: contract section 7, GET `/api/v1/sandboxes/{id}`. */
export function sandboxView(row: ManagedSandboxRow): ManagedSandbox {
  return {
    id: row.sandbox_id,
    template_id: row.template_id,
    team_id: row.team_id,
    status: row.status,
    paused: row.status === 'paused',
    auto_resume: row.auto_resume === 1,
    pod_name: row.pod_name,
    runtime_generation: row.runtime_generation,
    resources: JSON.parse(row.resources),
    expires_at: optionalTimestamp(row.expires_at_ms),
    hard_expires_at: optionalTimestamp(row.hard_expires_at_ms),
    claimed_at: optionalTimestamp(row.claimed_at_ms),
    created_at: timestamp(row.created_at_ms),
    updated_at: timestamp(row.updated_at_ms),
  };
}

/** A row as GET `…/{id}/status` shows it. */
export function statusView(row: ManagedSandboxRow) {
  const { id, ...view } = sandboxView(row);
  return {
    sandbox_id: id,
    template_id: view.template_id,
    team_id: view.team_id,
    pod_name: view.pod_name,
    status: view.status,
    claimed_at: view.claimed_at,
    expires_at: view.expires_at,
    hard_expires_at: view.hard_expires_at,
    created_at: view.created_at,
  };
}

/** A wall time in ms as an RFC 3339 timestamp; null if there is none. */
export function optionalTimestamp(wall_ms: number | null): string | null {
  return wall_ms === null ? null : timestamp(wall_ms);
}
