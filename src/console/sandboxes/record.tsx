import { BY_NETWORK_POLICY } from '../../contract/network.ts';
import type { DirectionUsage } from '../../contract/sandboxes.ts';
import type { ManagedSandbox } from '../api/managed-sandbox.ts';
import { bytes, count, duration } from '../base/format.ts';
import { Id } from '../parts/copy.tsx';
import { Facts } from '../parts/facts.tsx';
import { Panel } from '../parts/panel.tsx';
import { Time } from '../parts/time.tsx';
import { Tags } from './sandboxes-page.tsx';

/** A sandbox's record, as its manager keeps it. */
export function Record({ sandbox }: { sandbox: ManagedSandbox }) {
  return (
    <div class="grid">
      <Panel title="Sandbox">
        <Facts
          facts={[
            ['Id', <Id key="id" id={sandbox.id} />],
            ['Team', <bdi key="team">{sandbox.team_id}</bdi>],
            ['Template', <bdi key="template">{sandbox.template_id}</bdi>],
            ['Pod', sandbox.pod_name === null ? '–' : <code key="pod">{sandbox.pod_name}</code>],
            [
              'Generation',
              <span key="generation" class="number">
                {sandbox.runtime_generation}
              </span>,
            ],
            [
              'Metadata',
              Object.keys(sandbox.metadata).length === 0 ? (
                '–'
              ) : (
                <Tags key="tags" metadata={sandbox.metadata} />
              ),
            ],
            [
              'Environment',
              sandbox.env_names.length === 0 ? '–' : <code key="env">{sandbox.env_names.join(', ')}</code>,
            ],
          ]}
        />
      </Panel>
      <Panel title="Life">
        <Facts
          facts={[
            ['Created', <Time key="created" at={sandbox.created_at} />],
            ['Claimed', <Time key="claimed" at={sandbox.claimed_at} />],
            ['Changed', <Time key="updated" at={sandbox.updated_at} />],
            ['Is paused', <When key="expires" at={sandbox.expires_at} />],
            ['Is deleted', <When key="hard" at={sandbox.hard_expires_at} />],
            [
              'Unused for',
              sandbox.idle_ttl === 0
                ? 'never paused for it'
                : `${duration(sandbox.idle_ttl * 1_000)}, then paused`,
            ],
            ['Auto resume', sandbox.auto_resume ? 'with the next call' : 'no'],
          ]}
        />
      </Panel>
      <Panel title="Resources">
        <Facts
          facts={[
            ['Memory', sandbox.resources.memory],
            ['Cores', String(sandbox.resources.cpu)],
            ['Disk', sandbox.resources.disk],
            sandbox.persistence === null
              ? null
              : ['Persists', sandbox.persistence === 'root' ? 'the whole root' : 'the working folder alone'],
          ]}
        />
      </Panel>
      <Webhook sandbox={sandbox} />
      <Network sandbox={sandbox} />
    </div>
  );
}

function When({ at }: { at: string | null }) {
  if (at === null) return <span class="muted">never</span>;
  return (
    <span>
      <Time at={at} />{' '}
      <span class="muted">
        (<Time at={at} is_relative />)
      </span>
    </span>
  );
}

function Webhook({ sandbox: { webhook } }: { sandbox: ManagedSandbox }) {
  return (
    <Panel title="Webhook">
      {webhook === null ? (
        <p class="muted">None: its events are not sent. A webhook is set with the claim alone.</p>
      ) : (
        <Facts
          facts={[
            ['URL', <code key="url">{webhook.url}</code>],
            ['Signed', webhook.has_secret ? 'yes' : 'no: anyone can send what looks like its events'],
            [
              'Watches',
              webhook.watch_dir === null ? 'nothing' : <code key="watch">{webhook.watch_dir}</code>,
            ],
            webhook.watch_ignore.length === 0
              ? null
              : ['But not', <code key="ignore">{webhook.watch_ignore.join(', ')}</code>],
            ['Retries', webhook.retry === 'any' ? 'every status but 2xx and 410' : '408, 425, 429 and 5xx'],
            ['Kinds', <code key="kinds">{webhook.events.join(', ')}</code>],
          ]}
        />
      )}
    </Panel>
  );
}

function Network({ sandbox }: { sandbox: ManagedSandbox }) {
  const { network, bandwidth, network_usage } = sandbox;
  const rate = (value: number) => (value === 0 ? 'unlimited' : `${bytes(value)}/s`);
  const { egress_bandwidth_bytes_per_second, ingress_bandwidth_bytes_per_second, bandwidth_burst_bytes } =
    bandwidth;
  return (
    <Panel title="Network">
      <div class="stack">
        <Facts
          facts={[
            ['Mode', network.mode],
            network.enforced_by === 'network_policy' ? ['Enforced', BY_NETWORK_POLICY] : null,
            ['Egress', rate(egress_bandwidth_bytes_per_second)],
            ['Ingress', rate(ingress_bandwidth_bytes_per_second)],
            bandwidth_burst_bytes === 0 ? null : ['Burst', bytes(bandwidth_burst_bytes)],
          ]}
        />
        {network_usage === null ? (
          <p class="muted">Its bytes are not counted: this network is not metered.</p>
        ) : (
          <Traffic egress={network_usage.egress} ingress={network_usage.ingress} />
        )}
      </div>
    </Panel>
  );
}

const ROWS: readonly [text: string, show: (usage: DirectionUsage) => string][] = [
  ['Passed', ({ passed_bytes }) => bytes(passed_bytes)],
  ['Packets', ({ passed_packets }) => count(passed_packets)],
  ['Dropped', ({ dropped_bytes, dropped_packets }) => `${bytes(dropped_bytes)} (${count(dropped_packets)})`],
  ['Waited', ({ waited_ms }) => duration(waited_ms)],
];

function Traffic({ egress, ingress }: { egress: DirectionUsage; ingress: DirectionUsage }) {
  return (
    <table class="table">
      <thead>
        <tr>
          <th scope="col">
            <span class="unseen">What</span>
          </th>
          <th scope="col" class="is-right">
            Egress
          </th>
          <th scope="col" class="is-right">
            Ingress
          </th>
        </tr>
      </thead>
      <tbody>
        {ROWS.map(([text, show]) => (
          <tr key={text}>
            <td class="muted">{text}</td>
            <td class="is-right number">{show(egress)}</td>
            <td class="is-right number">{show(ingress)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
