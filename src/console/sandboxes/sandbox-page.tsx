import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ManagedSandbox } from '../api/managed-sandbox.ts';
import { type Place, placeOf } from '../api/place.ts';
import { useResource } from '../api/resource.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { linkTo, useRoute } from '../base/router.ts';
import { DeliveryList } from '../deliveries/delivery-list.tsx';
import { DeliveryView } from '../deliveries/delivery-view.tsx';
import { SandboxEvents } from '../events/sandbox-events.tsx';
import { FilesView } from '../files/files-view.tsx';
import { StateBadge } from '../parts/badge.tsx';
import { Boundary } from '../parts/boundary.tsx';
import { Copy } from '../parts/copy.tsx';
import { Icon } from '../parts/icon.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ProcessList } from '../processes/process-list.tsx';
import { ProcessView } from '../processes/process-view.tsx';
import { TerminalView } from '../terminal/terminal-view.tsx';
import { type Change, ChangeDialog } from './change-dialogs.tsx';
import { Record } from './record.tsx';

const REFRESH_MS = 4_000;

const TABS: readonly [segment: string, text: string][] = [
  ['', 'Record'],
  ['events', 'Events'],
  ['processes', 'Processes'],
  ['terminal', 'Terminal'],
  ['files', 'Files'],
  ['deliveries', 'Deliveries'],
];

/** One sandbox of a manager, with its tabs. */
export function SandboxPage({ sandbox_id }: { sandbox_id: string }) {
  const { segments } = useRoute();
  const [, , tab = ''] = segments;
  const record = useResource(sandbox_id, (signal) => sandboxes.one(sandbox_id, signal), REFRESH_MS);
  const [change, setChange] = useState<Change | null>(null);
  return (
    <div class="page">
      <header class="page-head">
        <div class="title">
          <a class="crumb" href={linkTo(['sandboxes'])}>
            Sandboxes
          </a>
          <span class="muted" aria-hidden="true">
            /
          </span>
          <h1 class="mono">{sandbox_id}</h1>
          <Copy text={sandbox_id} label="Copy id" />
          {record.data && <StateBadge state={record.data.status} />}
        </div>
        {record.data && <Actions sandbox={record.data} onChange={setChange} />}
      </header>
      <nav class="tabs" aria-label="Sandbox">
        {TABS.map(([segment, text]) => (
          <a
            key={segment}
            href={linkTo(['sandboxes', sandbox_id, segment].filter(Boolean))}
            aria-current={tab === segment ? 'page' : undefined}
          >
            {text}
          </a>
        ))}
      </nav>
      <Loaded resource={record}>
        {(sandbox) => (
          <>
            <Notice sandbox={sandbox} />
            <SandboxTab
              place={placeOf(sandbox_id)}
              path={segments.slice(2)}
              record={<Record sandbox={sandbox} />}
            />
          </>
        )}
      </Loaded>
      {change && <ChangeDialog change={change} onClose={() => setChange(null)} onDone={record.reload} />}
    </div>
  );
}

interface TabProps {
  place: Place;
  /** The segments of the link behind the sandbox's own. */
  path: readonly string[];
  record: ComponentChildren;
}

/** What a tab of a sandbox shows, at a manager and for one daemon. */
export function SandboxTab(props: TabProps) {
  const view = props.path.slice(0, 2).join('/');
  return (
    <Boundary key={view} of={view}>
      <Tab {...props} />
    </Boundary>
  );
}

function Tab({ place, path, record }: TabProps) {
  const [tab = '', id] = path;
  switch (tab) {
    case 'events':
      return <SandboxEvents place={place} />;
    case 'processes':
      return id === undefined ? <ProcessList place={place} /> : <ProcessView place={place} process_id={id} />;
    case 'terminal':
      return <TerminalView place={place} />;
    case 'files':
      return <FilesView place={place} />;
    case 'deliveries':
      return id === undefined ? (
        <DeliveryList outbox={place} link={[...place.link, 'deliveries']} />
      ) : (
        <DeliveryView outbox={place} event_id={id} link={[...place.link, 'deliveries']} />
      );
    default:
      return record;
  }
}

function Actions({ sandbox, onChange }: { sandbox: ManagedSandbox; onChange(change: Change): void }) {
  const { status } = sandbox;
  const button = (verb: Change['verb'], text: string, style = '') => (
    <button type="button" class={`button ${style}`} onClick={() => onChange({ verb, sandbox })}>
      {text}
    </button>
  );
  const is_up = status === 'running' || status === 'paused';
  return (
    <div class="actions">
      {status === 'running' && button('pause', 'Pause')}
      {status === 'paused' && button('resume', 'Resume', 'is-primary')}
      {is_up && sandbox.expires_at !== null && button('refresh', 'Refresh')}
      {is_up && button('edit', 'Change')}
      {is_up && button('fork', 'Fork')}
      {status !== 'terminating' && status !== 'deleted' && button('delete', 'Delete', 'is-danger')}
    </div>
  );
}

function Notice({ sandbox: { status, failure } }: { sandbox: ManagedSandbox }) {
  if (status === 'deleted' || status === 'terminating') {
    return (
      <p class="note is-warn" role="status">
        <span>
          <Icon name="sandboxes" /> This sandbox has been deleted. Its last record is shown for 24 h; what it
          had not delivered goes on from the <a href={linkTo(['deliveries'])}>manager's deliveries</a>.
        </span>
      </p>
    );
  }
  if (status !== 'failed') return null;
  return (
    <p class="note is-bad" role="status">
      Its runtime is lost{failure === null ? '' : ` (${failure})`}: nothing in it runs, and it can only be
      deleted. What it had committed is delivered then.
    </p>
  );
}
