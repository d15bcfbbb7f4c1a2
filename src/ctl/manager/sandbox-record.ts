import { EVENT_TYPES } from '../../contract/events.ts';
import { BY_NETWORK_POLICY } from '../../contract/network.ts';
import type { DirectionUsage, ManagedSandbox, SandboxNetworkView } from '../../contract/sandboxes.ts';
import type { ManagerContext } from '../context.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { duration, moment, size } from '../terminal/quantity.ts';
import { selectedSandbox } from './sandbox-id.ts';
import { metadataText, STATUS_STYLES } from './sandbox-table.ts';

/** Shows one sandbox; the beginning of its id is enough. Contract section 7, `GET /api/v1/sandboxes/{id}`. */
export async function showSandbox(context: ManagerContext, given?: string): Promise<ExitCode> {
  const id = await selectedSandbox(context, given);
  const call = { path: { sandbox_id: id }, query: { include_deleted: true } };
  await printSandbox(context, await context.manager.GET('/api/v1/sandboxes/{sandbox_id}', call));
  return EXIT.ok;
}

/** Prints one record as text or, with `--json`, as JSON. */
async function printSandbox({ out, json }: ManagerContext, sandbox: ManagedSandbox): Promise<void> {
  if (json) return out.line(JSON.stringify(sandbox));
  const { status, failure, resources, bandwidth, network, network_usage, webhook, env_names } = sandbox;
  const state = failure === null ? status : `${status} (${failure})`;
  const fields: [string, string | null][] = [
    ['sandbox', `${sandbox.id} of team ${sandbox.team_id}`],
    ['status', out.style(STATUS_STYLES[status] ?? 'dim', state)],
    ['template', sandbox.template_id],
    ['runs as', `${sandbox.pod_name ?? '-'}, generation ${sandbox.runtime_generation}`],
    ['persists', persistenceText(sandbox)],
    ['resources', `${resources.memory} of memory, ${resources.cpu} cores, ${resources.disk} of disk`],
    ['network', networkText(network)],
    ['bandwidth', bandwidthText(bandwidth)],
    [
      'traffic',
      network_usage && `${trafficText(network_usage.egress)} out, ${trafficText(network_usage.ingress)} in`,
    ],
    ['webhook', webhook && `${webhook.url}${webhook.has_secret ? ', signed' : ', not signed'}`],
    ['sends', webhook && webhook.events.length < EVENT_TYPES.length ? webhook.events.join(' ') : null],
    ['retries', webhook?.retry === 'any' ? 'every status but 2xx and 410' : null],
    ['watches', webhook?.watch_dir ?? null],
    ['ignores', webhook?.watch_ignore.join(' ') || null],
    ['environment', env_names.length === 0 ? null : env_names.join(' ')],
    ['metadata', metadataText(sandbox.metadata) || null],
    ['auto resume', sandbox.auto_resume ? 'yes' : null],
    ['idle', sandbox.idle_ttl > 0 ? `paused after ${duration(sandbox.idle_ttl * 1_000)} without use` : null],
    ['expires', sandbox.expires_at && `${moment(sandbox.expires_at)}, paused then`],
    ['ends', sandbox.hard_expires_at && `${moment(sandbox.hard_expires_at)}, deleted then`],
    ['created', moment(sandbox.created_at)],
    ['updated', moment(sandbox.updated_at)],
  ];
  for (const [name, value] of fields) {
    if (value !== null) await out.line(`${name.padEnd(12)}${value}`);
  }
}

/** What its forks get, and what is left when its Pod ends. */
function persistenceText({ persistence }: ManagedSandbox): string | null {
  if (!persistence) return null; // a manager of before does not say it
  return persistence === 'root' ? 'its whole root' : 'its working folder alone';
}

function bandwidthText(bandwidth: ManagedSandbox['bandwidth']): string | null {
  const { egress_bandwidth_bytes_per_second: egress, ingress_bandwidth_bytes_per_second: ingress } =
    bandwidth;
  if (egress === 0 && ingress === 0) return null;
  const rate = (bytes: number) => (bytes === 0 ? 'unlimited' : `${size(bytes)}/s`);
  return `${rate(egress)} out, ${rate(ingress)} in`;
}

function trafficText({ passed_bytes, dropped_bytes }: DirectionUsage): string {
  return `${size(passed_bytes)}${dropped_bytes > 0 ? ` (${size(dropped_bytes)} dropped)` : ''}`;
}

function networkText({ mode, enforced_by }: SandboxNetworkView): string {
  return enforced_by === 'network_policy' ? `${mode}, ${BY_NETWORK_POLICY}` : mode;
}
