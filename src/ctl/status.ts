import type { EndpointView } from '../contract/deliveries.ts';
import type { WatcherStatus } from '../contract/sandbox.ts';
import type { DaemonContext } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';
import { printable } from './terminal/printable.ts';
import { duration, moment, size } from './terminal/quantity.ts';

/** Shows the state of the sandbox, its outbox, its endpoint and its directory watch. */
export async function status({ daemon, out, json }: DaemonContext): Promise<ExitCode> {
  const sandbox = await daemon.GET('/api/v1/sandbox');
  if (json) {
    await out.line(JSON.stringify(sandbox));
    return EXIT.ok;
  }
  const { outbox, endpoint, resource_usage } = sandbox;
  const kept = (['pending', 'delivered', 'failed', 'expired', 'foreign'] as const).map(
    (state) => `${outbox[state]} ${state}`,
  );
  const fields: [string, string][] = [
    ['sandbox', `${sandbox.sandbox_id || '-'} of team ${sandbox.team_id || '-'}`],
    ['state', `${sandbox.state} for ${duration(sandbox.uptime_ms)}`],
    ['version', sandbox.version],
    ['outbox', `${kept.join(', ')}; ${size(outbox.bytes)} undelivered`],
    ['endpoint', endpointText(endpoint, out)],
    ['watcher', watcherText(sandbox.watcher)],
    [
      'resources',
      `${resource_usage.processes} processes, ${size(resource_usage.memory_bytes)}, ${duration(resource_usage.cpu_ms)} of CPU`,
    ],
  ];
  for (const [name, value] of fields) await out.line(`${name.padEnd(11)}${value}`);
  return EXIT.ok;
}

function endpointText(endpoint: EndpointView | null, out: DaemonContext['out']): string {
  if (endpoint === null) return 'no webhook configured';
  const { health, refusals } = endpoint;
  if (health === 'ok') return out.style('green', 'ok');
  if (refusals !== null) {
    return `${out.style('red', 'rejecting')}, refused the last ${refusals.count} attempts, with ${refusals.status}`;
  }
  return `${out.style('red', 'not answering')}, next attempt ${moment(endpoint.next_probe_at)}`;
}

function watcherText(watcher: WatcherStatus | null): string {
  if (watcher === null) return 'no directory watched';
  const { state, watch_dir, index_size, degraded } = watcher;
  return printable(`${state} ${watch_dir}, ${index_size} files${degraded === null ? '' : `; ${degraded}`}`);
}
