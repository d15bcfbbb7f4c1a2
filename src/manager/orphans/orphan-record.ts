import { StartError } from '../../contract/errors.ts';
import { sizeText } from '../../contract/limits.ts';
import type { KeptSandbox } from '../../runtime/runtime.ts';
import type { Seal } from '../database/seal.ts';
import { envOf, type NotedRow, sealContext, sealedEnv } from '../sandboxes/sandbox-row.ts';
import type { ManagedSandboxRow } from '../sandboxes/sandbox-store.ts';
import { madeMs } from './orphans.ts';

/** The node of all sandboxes, as claims write it. */
const NODE = 'local';

/** A row that was made again, and what of it could not be known, a phrase for each. */
export interface RestoredRow {
  row: ManagedSandboxRow;
  unknown: string[];
}

/**
 * Makes the row of an orphan again, of what its runtime and its manager have kept with it. Its times begin at `now_ms`.
 * Throws StartError where another key has sealed what was kept.
 */
export function restoredRow(sandbox_id: string, kept: KeptSandbox, seal: Seal, now_ms: number): RestoredRow {
  const noted = openNote(sandbox_id, kept, seal);
  const status = kept.state === 'running' || kept.state === 'paused' ? kept.state : 'failed';
  const is_running = status === 'running';
  const { ttl_s = 0, hard_ttl_s = 0, idle_ttl_s = 0 } = noted ?? {};
  const disk_mib = noted?.disk_mib ?? kept.disk_mib;
  const { cpu = kept.cpu_millis / 1000, disk } = JSON.parse(noted?.resources ?? '{}');
  const resources = { memory: sizeText(kept.memory_mib), cpu, ...(disk === undefined ? {} : { disk }) };
  const row: ManagedSandboxRow = {
    sandbox_id,
    team_id: kept.team_id,
    template_id: noted?.template_id ?? 'default',
    status,
    operation: null,
    operation_owner: null,
    operation_until_ms: null,
    // Higher than what the sandbox remembers of operations.
    operation_fence: now_ms,
    auto_resume: noted?.auto_resume ?? 0,
    pod_name: kept.made.pod_name,
    persistence: kept.made.persistence,
    runtime_generation: 1,
    memory_mib: kept.memory_mib,
    cpu_millis: kept.cpu_millis,
    held_mib: status === 'paused' ? kept.held_mib : null,
    resources: JSON.stringify(resources),
    metadata: noted?.metadata ?? '{}',
    disk_mib,
    bandwidth: noted?.bandwidth ?? null,
    network: noted?.network ?? null,
    webhook_url: noted?.webhook_url ?? null,
    webhook_secret_sealed: noted?.webhook_secret_sealed ?? null,
    watch_dir: noted?.watch_dir ?? kept.watch_dir,
    watch_ignore: noted?.watch_ignore ?? null,
    webhook_events: noted?.webhook_events ?? null,
    webhook_retry: noted?.webhook_retry ?? null,
    ...notedEnv(sandbox_id, noted, seal),
    ttl_s,
    hard_ttl_s,
    idle_ttl_s,
    expires_at_ms: is_running ? endOf(now_ms, ttl_s) : null,
    hard_expires_at_ms: endOf(now_ms, hard_ttl_s),
    idle_expires_at_ms: is_running ? endOf(now_ms, idle_ttl_s) : null,
    claimed_at_ms: now_ms,
    created_at_ms: noted?.created_at_ms ?? madeMs(sandbox_id) ?? now_ms,
    updated_at_ms: now_ms,
    deleted_at_ms: null,
    node: NODE,
  };
  return { row, unknown: unknownOf(noted) };
}

/** As the end of a time is written when it is known; null for 0 (off). */
function endOf(now_ms: number, duration_s: number): number | null {
  return duration_s === 0 ? null : now_ms + duration_s * 1000;
}

function notedEnv(sandbox_id: string, noted: NotedRow | null, seal: Seal) {
  const env_sealed = noted?.env_sealed ?? null;
  return sealedEnv(env_sealed === null ? null : envOf({ sandbox_id, env_sealed }, seal), sandbox_id, seal);
}

function openNote(sandbox_id: string, { note }: KeptSandbox, seal: Seal): NotedRow | null {
  if (note === null || note === '') return null;
  try {
    return JSON.parse(seal.open(note, sealContext.note(sandbox_id)));
  } catch (error) {
    const text = `${sandbox_id} was made with another key than that of --secret-key-file, which its events need: give that key`;
    throw new StartError(text, 2, error);
  }
}

function unknownOf(noted: NotedRow | null): string[] {
  if (noted === null) {
    return [
      'its template, metadata, webhook, environment, network and times: it was made by an earlier version',
    ];
  }
  const changed = 'what was changed since the claim, but its memory';
  return noted.env_sealed === undefined
    ? [changed, 'its env_vars, which are too many to be kept with it']
    : [changed];
}
