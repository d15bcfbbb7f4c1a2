import type { RawBuilder } from 'kysely';
import { DISK_DEFAULT_MIB } from '../../contract/defaults.ts';
import type { EventType } from '../../contract/events.ts';
import type { SandboxBandwidth, SandboxNetworkView } from '../../contract/sandboxes.ts';
import type { WebhookRetry } from '../../contract/words.ts';
import type { RuntimeSpec, RuntimeWebhook } from '../../runtime/runtime.ts';
import { NO_BANDWIDTH } from '../config/bandwidth.ts';
import type { Moment } from '../database/database-clock-store.ts';
import type { Seal } from '../database/seal.ts';
import type { Lease, WebhookTarget } from './ports.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';

/** A sealed environment that is longer is not noted: the note is read with every look at the sandbox. */
const NOTED_ENV_MAX = 4096;

/** Readers of the columns of a sandbox's row, and the times that are written to them. */

/** The resources that a sandbox leases. */
export function leaseOf(row: ManagedSandboxRow): Lease {
  const { sandbox_id, team_id, memory_mib, cpu_millis, disk_mib } = row;
  return { sandbox_id, team_id, memory_mib, cpu_millis, disk_mib };
}

/** What it takes of that while it is paused. */
export function heldBy(row: ManagedSandboxRow): Lease {
  return { ...leaseOf(row), memory_mib: row.held_mib ?? row.memory_mib };
}

/** The contexts that sealed texts are bound to. */
export const sealContext = {
  secret: (sandbox_id: string) => `sandbox/${sandbox_id}/webhook_secret`,
  env: (sandbox_id: string) => `sandbox/${sandbox_id}/env`,
  env_names: (sandbox_id: string) => `sandbox/${sandbox_id}/env_names`,
  note: (sandbox_id: string) => `sandbox/${sandbox_id}/note`,
};

/** The environment of a sandbox's processes. */
export function envOf(
  { sandbox_id, env_sealed }: Pick<ManagedSandboxRow, 'sandbox_id' | 'env_sealed'>,
  seal: Seal,
): Record<string, string> {
  return env_sealed === null ? {} : JSON.parse(seal.open(env_sealed, sealContext.env(sandbox_id)));
}

/** The columns that hold an environment; null: there is none. */
export function sealedEnv(
  env: Readonly<Record<string, string>> | null,
  sandbox_id: string,
  seal: Seal,
): Pick<ManagedSandboxRow, 'env_sealed' | 'env_names_sealed'> {
  if (env === null) return { env_sealed: null, env_names_sealed: null };
  return {
    env_sealed: seal.seal(JSON.stringify(env), sealContext.env(sandbox_id)),
    env_names_sealed: seal.seal(JSON.stringify(Object.keys(env).sort()), sealContext.env_names(sandbox_id)),
  };
}

/** The names of its environment, in order. */
export function envNamesOf(
  { sandbox_id, env_names_sealed }: Pick<ManagedSandboxRow, 'sandbox_id' | 'env_names_sealed'>,
  seal: Seal,
): string[] {
  return env_names_sealed === null
    ? []
    : JSON.parse(seal.open(env_names_sealed, sealContext.env_names(sandbox_id)));
}

/** A sandbox's own bandwidth. */
export function ownBandwidth({ bandwidth }: Pick<ManagedSandboxRow, 'bandwidth'>): SandboxBandwidth {
  return bandwidth === null ? NO_BANDWIDTH : JSON.parse(bandwidth);
}

/** A sandbox's network, as in its record. */
export function networkOf({ network }: Pick<ManagedSandboxRow, 'network'>): SandboxNetworkView {
  const { mode = 'allow-all', enforced_by }: Partial<SandboxNetworkView> = JSON.parse(network ?? '{}');
  return { mode, enforced_by: mode === 'allow-all' ? null : (enforced_by ?? 'network_namespace') };
}

/** The globs of what a sandbox's watch leaves out. */
export function watchIgnoreOf({ watch_ignore }: Pick<ManagedSandboxRow, 'watch_ignore'>): string[] {
  return watch_ignore === null ? [] : JSON.parse(watch_ignore);
}

/** The kinds of events that a sandbox's webhook is sent; null: all of them. */
export function sentKindsOf({
  webhook_events,
}: Pick<ManagedSandboxRow, 'webhook_events'>): EventType[] | null {
  return webhook_events === null ? null : JSON.parse(webhook_events);
}

/** The columns of a webhook; null: the sandbox has none. */
export function webhookColumns(webhook: RuntimeWebhook | null, sandbox_id: string, seal: Seal) {
  const secret = webhook?.secret;
  return {
    webhook_url: webhook?.url ?? null,
    webhook_secret_sealed: secret ? seal.seal(secret, sealContext.secret(sandbox_id)) : null,
    watch_dir: webhook?.watch_dir ?? null,
    watch_ignore: webhook?.watch_ignore.length ? JSON.stringify(webhook.watch_ignore) : null,
    webhook_events: webhook?.events ? JSON.stringify(webhook.events) : null,
    webhook_retry: webhook?.retry ?? null,
  };
}

/** Which refused attempts at a sandbox's events are made again. */
export function retryClassOf({ webhook_retry }: Pick<ManagedSandboxRow, 'webhook_retry'>): WebhookRetry {
  return webhook_retry ?? 'transient';
}

/** Where a sandbox's events are delivered; null if it has no webhook. */
export function webhookTargetOf(row: ManagedSandboxRow, seal: Seal): WebhookTarget | null {
  const { sandbox_id, team_id, webhook_url, webhook_secret_sealed } = row;
  if (webhook_url === null) return null;
  const webhook_secret =
    webhook_secret_sealed === null ? '' : seal.open(webhook_secret_sealed, sealContext.secret(sandbox_id));
  return { sandbox_id, team_id, webhook_url, webhook_secret, retry: retryClassOf(row) };
}

/** The runtime's spec for a row. */
export function specOf(row: ManagedSandboxRow, seal: Seal): RuntimeSpec {
  const target = webhookTargetOf(row, seal);
  return {
    sandbox_id: row.sandbox_id,
    team_id: row.team_id,
    template_id: row.template_id,
    webhook: target && {
      url: target.webhook_url,
      secret: target.webhook_secret,
      watch_dir: row.watch_dir,
      watch_ignore: watchIgnoreOf(row),
      events: sentKindsOf(row),
      retry: target.retry,
    },
    env: envOf(row, seal),
    record_key: seal.recordKey(row.sandbox_id),
    memory_mib: row.memory_mib,
    cpu_millis: row.cpu_millis,
    disk_mib: row.disk_mib ?? DISK_DEFAULT_MIB,
    network_mode: networkOf(row).mode,
    bandwidth: ownBandwidth(row),
    note: seal.seal(JSON.stringify(notedOf(row)), sealContext.note(row.sandbox_id)),
  };
}

/** What a runtime keeps of a row for the manager, so that a lost one can be made again: what it does not know itself. */
export type NotedRow = ReturnType<typeof notedOf>;

function notedOf(row: ManagedSandboxRow) {
  const { template_id, auto_resume, resources, metadata, disk_mib, bandwidth, network, created_at_ms } = row;
  const { webhook_url, webhook_secret_sealed, watch_dir, watch_ignore, webhook_events, webhook_retry } = row;
  const { ttl_s, hard_ttl_s, idle_ttl_s, env_sealed } = row;
  return {
    ...{ template_id, auto_resume, resources, metadata, disk_mib, bandwidth, network, created_at_ms },
    ...{ webhook_url, webhook_secret_sealed, watch_dir, watch_ignore, webhook_events, webhook_retry },
    ...{ ttl_s, hard_ttl_s, idle_ttl_s },
    env_sealed: (env_sealed?.length ?? 0) > NOTED_ENV_MAX ? undefined : env_sealed,
  };
}

/** The wall time in ms at which `duration_s` seconds from `at` are over; null if the duration is 0 (off). */
export function after(at: Moment, duration_s: number): RawBuilder<number> | null {
  return duration_s === 0 ? null : at.in(duration_s * 1000);
}

/** The times that a resume restarts: those that count while a sandbox runs. */
export function timesOfResume({ ttl_s, idle_ttl_s }: { ttl_s: number; idle_ttl_s: number }, at: Moment) {
  return { expires_at_ms: after(at, ttl_s), idle_expires_at_ms: after(at, idle_ttl_s) };
}
