import { useState } from 'preact/hooks';
import type { ManagedStatus } from '../../contract/words.ts';
import type { ManagedSandbox, SandboxPage } from '../api/managed-sandbox.ts';
import { useResource } from '../api/resource.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { count } from '../base/format.ts';
import { given, goTo, linkTo, setQuery, useRoute } from '../base/router.ts';
import { StateBadge } from '../parts/badge.tsx';
import { Icon } from '../parts/icon.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Empty } from '../parts/notes.tsx';
import { onRowKey } from '../parts/rows.ts';
import { Time } from '../parts/time.tsx';
import { type Change, ChangeDialog } from './change-dialogs.tsx';
import { ClaimDialog } from './claim-dialog.tsx';
import { SandboxFilters } from './filters.tsx';

const KEYS = {
  id: ({ id }: ManagedSandbox) => id,
  status: ({ status }: ManagedSandbox) => status,
  template: ({ template_id }: ManagedSandbox) => template_id,
  expires: ({ expires_at }: ManagedSandbox) => expires_at ?? '9',
  created: ({ created_at }: ManagedSandbox) => created_at,
};

/** In which order a page of sandboxes is shown; the pages themselves are newest first. */
interface Sorting {
  by: keyof typeof KEYS;
  is_descending: boolean;
}

/** The order that a link names: `created`, or `-created` from the last. */
function sortingOf(text: string | null): Sorting {
  const [, minus = '', by = ''] = /^(-?)(\w+)$/.exec(text ?? '') ?? [];
  if (!Object.hasOwn(KEYS, by)) return { by: 'created', is_descending: true };
  return { by: by as Sorting['by'], is_descending: minus === '-' };
}

/** The sandboxes of a page in an order. */
function sorted(page: readonly ManagedSandbox[], { by, is_descending }: Sorting): ManagedSandbox[] {
  const key = KEYS[by];
  const rising = page.toSorted((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
  return is_descending ? rising.reverse() : rising;
}

const PAGE = 100;
const REFRESH_MS = 5_000;

/** The team's sandboxes. */
export function SandboxesPage() {
  const { query } = useRoute();
  const [is_claiming, setClaiming] = useState(false);
  const [change, setChange] = useState<Change | null>(null);
  const offset = Math.max(0, Math.trunc(Number(query.get('offset')) || 0));
  const filter = {
    ...given({ status: query.get('status') as ManagedStatus | null, template_id: query.get('template') }),
    metadata: query.getAll('metadata'),
  };
  const list = useResource(
    JSON.stringify([filter, offset]),
    (signal) => sandboxes.list({ ...filter, limit: PAGE, offset }, signal),
    REFRESH_MS,
  );
  return (
    <div class="page">
      <header class="page-head">
        <h1>Sandboxes</h1>
        {list.data && <span class="muted number">{count(list.data.count)}</span>}
        <div class="actions">
          <button type="button" class="button" data-key="r" title="Load again (r)" onClick={list.reload}>
            <Icon name="refresh" />
            Reload
          </button>
          <button
            type="button"
            class="button is-primary"
            data-key="n"
            title="Claim a sandbox (n)"
            onClick={() => setClaiming(true)}
          >
            <Icon name="plus" />
            Claim
          </button>
        </div>
      </header>
      <SandboxFilters query={query} />
      <Loaded resource={list}>
        {(page) => (
          <section class="panel" aria-label="Sandboxes">
            <SandboxTable page={page} sorting={sortingOf(query.get('sort'))} onChange={setChange} />
            <Pager page={page} offset={offset} is_sorted={query.has('sort')} />
          </section>
        )}
      </Loaded>
      {is_claiming && (
        <ClaimDialog
          onClose={() => setClaiming(false)}
          onClaimed={(id) => {
            setClaiming(false);
            goTo(linkTo(['sandboxes', id]));
          }}
        />
      )}
      {change && <ChangeDialog change={change} onClose={() => setChange(null)} onDone={list.reload} />}
    </div>
  );
}

interface TableProps {
  page: SandboxPage;
  sorting: Sorting;
  onChange(change: Change): void;
}

function SandboxTable({ page, sorting, onChange }: TableProps) {
  if (page.sandboxes.length === 0) {
    return (
      <Empty title="No sandbox is here">
        Claim one with the button above, or with <code>sandboxctl sandbox claim</code>; with a filter set,
        take it away.
      </Empty>
    );
  }
  return (
    <div class="table-frame">
      <table class="table table-cards" onKeyDown={onRowKey}>
        <thead>
          <tr>
            <SortHead name="id" text="Sandbox" sorting={sorting} />
            <SortHead name="status" text="Status" sorting={sorting} />
            <SortHead name="template" text="Template" sorting={sorting} />
            <th scope="col">Metadata</th>
            <th scope="col">Resources</th>
            <SortHead name="expires" text="Pauses" sorting={sorting} />
            <SortHead name="created" text="Created" sorting={sorting} />
            <th scope="col">
              <span class="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {sorted(page.sandboxes, sorting).map((sandbox) => (
            <Row key={sandbox.id} sandbox={sandbox} onChange={onChange} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SortHead({ name, text, sorting }: { name: Sorting['by']; text: string; sorting: Sorting }) {
  const is_by = sorting.by === name;
  const order = is_by ? (sorting.is_descending ? 'descending' : 'ascending') : 'none';
  const next = is_by && !sorting.is_descending ? `-${name}` : name;
  return (
    <th scope="col" aria-sort={order}>
      <button
        type="button"
        class="button is-plain"
        onClick={() => setQuery({ sort: next }, { replace: true })}
      >
        {text}
        <span aria-hidden="true">{is_by ? (sorting.is_descending ? '↓' : '↑') : ''}</span>
      </button>
    </th>
  );
}

function Row({ sandbox, onChange }: { sandbox: ManagedSandbox; onChange(change: Change): void }) {
  const { id, status, template_id, metadata, resources, expires_at, created_at } = sandbox;
  const verb = status === 'paused' ? 'resume' : 'pause';
  return (
    <tr>
      <td>
        <a class="row-link mono" href={linkTo(['sandboxes', id])}>
          {id}
        </a>
      </td>
      <td>
        <StateBadge state={status} />
      </td>
      <td>{template_id === 'default' ? <span class="muted">default</span> : <bdi>{template_id}</bdi>}</td>
      <td class="is-wide">
        <Tags metadata={metadata} />
      </td>
      <td class="number muted">
        {resources.memory} · {resources.cpu} cpu
      </td>
      <td>
        <Time at={expires_at} is_relative />
      </td>
      <td>
        <Time at={created_at} is_relative />
      </td>
      <td>
        <div class="row-actions">
          {(status === 'running' || status === 'paused') && (
            <button type="button" class="button is-small" onClick={() => onChange({ verb, sandbox })}>
              {verb === 'pause' ? 'Pause' : 'Resume'}
              <span class="unseen"> {id}</span>
            </button>
          )}
          {status !== 'terminating' && (
            <button
              type="button"
              class="button is-small"
              onClick={() => onChange({ verb: 'delete', sandbox })}
            >
              Delete<span class="unseen"> {id}</span>
            </button>
          )}
        </div>
      </td>
    </tr>
  );
}

/** Metadata as labels, each of which narrows the list to its like. */
export function Tags({ metadata }: { metadata: Record<string, string> }) {
  const pairs = Object.entries(metadata);
  if (pairs.length === 0) return null;
  return (
    <ul class="tags">
      {pairs.map(([key, text]) => (
        <li key={key} class="tag" title={`${key}: ${text}`}>
          <bdi>
            {key}:{text}
          </bdi>
        </li>
      ))}
    </ul>
  );
}

interface PagerProps {
  page: SandboxPage;
  offset: number;
  is_sorted: boolean;
}

function Pager({ page, offset, is_sorted }: PagerProps) {
  const { count: total, has_more, sandboxes: shown } = page;
  const to = (next: number) => setQuery({ offset: next === 0 ? null : Math.max(0, next) });
  const last = Math.floor(Math.max(0, total - 1) / PAGE) * PAGE;
  return (
    <nav class="pager" aria-label="Pages">
      <span class="number">
        {shown.length === 0 ? 0 : count(offset + 1)}–{count(offset + shown.length)} of {count(total)}
      </span>
      {is_sorted && (has_more || offset > 0) && (
        <span>Sorted within this page; the pages are newest first.</span>
      )}
      <div class="actions">
        <button type="button" class="button is-small" disabled={offset === 0} onClick={() => to(0)}>
          First
        </button>
        <button
          type="button"
          class="button is-small"
          disabled={offset === 0}
          onClick={() => to(offset - PAGE)}
        >
          Newer
        </button>
        <button type="button" class="button is-small" disabled={!has_more} onClick={() => to(offset + PAGE)}>
          Older
        </button>
        <button type="button" class="button is-small" disabled={!has_more} onClick={() => to(last)}>
          Last
        </button>
      </div>
    </nav>
  );
}
