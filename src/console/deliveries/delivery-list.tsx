import { useState } from 'preact/hooks';
import { DELIVERY_STATES, FINAL_STATES, type FinalState } from '../../contract/deliveries.ts';
import { EVENT_TYPES } from '../../contract/events.ts';
import { deliveries, type Outbox } from '../api/deliveries.ts';
import { useResource } from '../api/resource.ts';
import { goTo, linkTo, setQuery, useRoute } from '../base/router.ts';
import { CursorPages } from '../parts/cursor-pages.tsx';
import { Select } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { Loaded } from '../parts/notes.tsx';
import { DeliveryTable } from './delivery-table.tsx';
import { ReplayAll, ReplayChosen } from './replay-dialog.tsx';

const PAGE = 100;
const REFRESH_MS = 5_000;

interface ListProps {
  outbox: Outbox;
  /** The first segments of the links to its records. */
  link: readonly string[];
}

/** The records of an outbox, newest first. */
export function DeliveryList({ outbox, link }: ListProps) {
  const { query } = useRoute();
  const state = query.get('state');
  const event_type = query.get('kind');
  const cursor = query.get('cursor');
  const wanted = query.get('sandbox') ?? '';
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [replaying, setReplaying] = useState<'chosen' | FinalState | null>(null);
  const list = useResource(
    JSON.stringify([outbox?.path, state, event_type, cursor]),
    (signal) => deliveries.list(outbox, { state, event_type, cursor, limit: PAGE }, signal),
    REFRESH_MS,
  );
  const done = () => {
    setChosen(new Set());
    list.reload();
  };
  return (
    <section class="panel" aria-label="Deliveries">
      <div class="panel-head">
        <Filters has_sandboxes={outbox === null} query={query} />
        <div class="actions">
          {chosen.size > 0 && (
            <button type="button" class="button is-primary" onClick={() => setReplaying('chosen')}>
              Replay {chosen.size}
            </button>
          )}
          <Select
            label="Replay all"
            is_bare
            value=""
            options={[
              ['', 'Replay all…'],
              ...FINAL_STATES.map((each): [string, string] => [each, `all ${each}`]),
            ]}
            onChange={(value) => value !== '' && setReplaying(value as FinalState)}
          />
        </div>
      </div>
      <Loaded resource={list}>
        {(page) => (
          <>
            <DeliveryTable
              link={link}
              shown={page.deliveries.filter(
                ({ sandbox_id = '' }) => wanted === '' || sandbox_id.includes(wanted),
              )}
              has_sandboxes={outbox === null}
              chosen={chosen}
              onChoose={setChosen}
            />
            <CursorPages cursor={cursor} next_cursor={page.next_cursor} words={['Newest', 'Older']} />
          </>
        )}
      </Loaded>
      {replaying === 'chosen' && (
        <ReplayChosen
          outbox={outbox}
          event_ids={[...chosen]}
          onClose={() => setReplaying(null)}
          onDone={done}
        />
      )}
      {replaying !== null && replaying !== 'chosen' && (
        <ReplayAll outbox={outbox} state={replaying} onClose={() => setReplaying(null)} onDone={done} />
      )}
    </section>
  );
}

function Filters({ has_sandboxes, query }: { has_sandboxes: boolean; query: URLSearchParams }) {
  const [text, setText] = useState(query.get('sandbox') ?? '');
  const open = () => {
    const word = text.trim();
    if (/^sbx_[0-9a-f-]{36}$/.test(word)) goTo(linkTo(['sandboxes', word, 'deliveries']));
    else setQuery({ sandbox: word }, { replace: true });
  };
  return (
    <form
      class="filters"
      aria-label="Filter"
      onSubmit={(event) => {
        event.preventDefault();
        open();
      }}
    >
      <Select
        label="State"
        is_bare
        value={query.get('state') ?? ''}
        options={[['', 'Any state'], ...DELIVERY_STATES]}
        onChange={(state) => setQuery({ state, cursor: null })}
      />
      <Select
        label="Kind"
        is_bare
        value={query.get('kind') ?? ''}
        options={[['', 'Every kind'], ...EVENT_TYPES]}
        onChange={(kind) => setQuery({ kind, cursor: null })}
      />
      {has_sandboxes && (
        <input
          class="input"
          data-key="slash"
          aria-label="A part of a sandbox's id; a whole one opens its own outbox"
          placeholder="part of a sandbox's id"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      )}
    </form>
  );
}

/** The records of the manager's own outbox: deletions, and what stopped sandboxes had not delivered. */
export function DeliveriesPage() {
  return (
    <div class="page">
      <header class="page-head">
        <h1>Deliveries</h1>
        <span class="muted">
          <Icon name="deliveries" /> the manager's outbox: deletions, and what stopped sandboxes had not
          delivered. A sandbox's own are in its tab.
        </span>
      </header>
      <DeliveryList outbox={null} link={['deliveries']} />
    </div>
  );
}
