import type { SandboxView } from '../../contract/sandbox.ts';
import { DAEMON } from '../api/place.ts';
import { useResource } from '../api/resource.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { bytes, count, duration } from '../base/format.ts';
import { useRoute } from '../base/router.ts';
import { Badge, StateBadge } from '../parts/badge.tsx';
import { Facts } from '../parts/facts.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Panel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { SandboxTab } from './sandbox-page.tsx';

const REFRESH_MS = 3_000;

/** The sandbox of one daemon, which the page is served for. */
export function DaemonPage() {
  const { segments } = useRoute();
  const here = useResource('sandbox', sandboxes.here, REFRESH_MS);
  return (
    <div class="page">
      <header class="page-head">
        <div class="title">
          <h1>
            <bdi>{here.data?.sandbox_id || 'Sandbox'}</bdi>
          </h1>
          {here.data && <StateBadge state={here.data.state} />}
        </div>
      </header>
      <SandboxTab
        place={DAEMON}
        path={segments}
        record={<Loaded resource={here}>{(view) => <View view={view} />}</Loaded>}
      />
    </div>
  );
}

function View({ view }: { view: SandboxView }) {
  const { sandbox_id, team_id, version, uptime_ms, resource_usage, outbox, endpoint, watcher } = view;
  return (
    <div class="grid">
      <Panel title="Daemon">
        <Facts
          facts={[
            ['Sandbox', sandbox_id || '–'],
            ['Team', team_id || '–'],
            ['Version', version],
            ['Up', duration(uptime_ms)],
            ['Memory', bytes(resource_usage.memory_bytes)],
            ['CPU', duration(resource_usage.cpu_ms)],
            ['Processes', count(resource_usage.processes)],
          ]}
        />
      </Panel>
      <Panel title="Outbox">
        <Facts
          facts={[
            [
              'Endpoint',
              endpoint === null ? (
                'no webhook is configured'
              ) : endpoint.refusals ? (
                <span key="endpoint" class="actions">
                  <Badge tone="bad" text="rejecting" />
                  <span>
                    the last {count(endpoint.refusals.count)} attempts, with {endpoint.refusals.status}
                  </span>
                </span>
              ) : endpoint.health === 'ok' ? (
                <Badge key="endpoint" tone="good" text="ok" />
              ) : (
                <span key="endpoint" class="actions">
                  <Badge tone="bad" text="in backoff" />
                  <span>
                    next probe <Time at={endpoint.next_probe_at} is_relative />
                  </span>
                </span>
              ),
            ],
            ...(['pending', 'delivered', 'failed', 'expired', 'foreign'] as const).map(
              (state): [string, string] => [state, count(outbox[state])],
            ),
            ['Undelivered', bytes(outbox.bytes)],
          ]}
        />
      </Panel>
      <Panel title="Watch">
        {watcher === null ? (
          <p class="muted">No directory is watched.</p>
        ) : (
          <Facts
            facts={[
              ['Directory', <code key="dir">{watcher.watch_dir}</code>],
              ['State', watcher.state],
              ['Known names', count(watcher.index_size)],
              ['Directories', count(watcher.directories_watched)],
              ['Events', count(watcher.events)],
              watcher.degraded === null ? null : ['Limits', watcher.degraded],
            ]}
          />
        )}
      </Panel>
    </div>
  );
}
