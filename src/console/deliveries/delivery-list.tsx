import { useState } from 'preact/hooks';
import type { EventType } from '../../contract/events.ts';
import { type DeliveryState, FINAL_STATES, type FinalState } from '../../contract/words.ts';
import { deliveries, type Outbox } from '../api/deliveries.ts';
import { useResource } from '../api/resource.ts';
import { given, useRoute } from '../base/router.ts';
import { CursorPages } from '../parts/cursor-pages.tsx';
import { Select } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { DeliveryFilters } from './delivery-filters.tsx';
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
  const cursor = query.get('cursor');
  const state = given({ state: query.get('state') as DeliveryState | null });
  const filter = given({
    event_type: query.get('kind') as EventType | null,
    sandbox_id: outbox === null ? query.get('sandbox') : null,
    endpoint: outbox === null ? query.get('endpoint') : null,
  });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [replaying, setReplaying] = useState<'chosen' | FinalState | null>(null);
  const list = useResource(
    JSON.stringify([outbox?.path, state, filter, cursor]),
    (signal) => deliveries.list(outbox, { ...state, ...filter, ...given({ cursor }), limit: PAGE }, signal),
    REFRESH_MS,
  );
  const done = () => {
    setChosen(new Set());
    list.reload();
  };
  return (
    <section class="panel" aria-label="Deliveries">
      <div class="panel-head">
        <DeliveryFilters outbox={outbox} query={query} shown={list.data?.deliveries ?? []} />
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
              shown={page.deliveries}
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
        <ReplayAll
          outbox={outbox}
          state={replaying}
          filter={filter}
          onClose={() => setReplaying(null)}
          onDone={done}
        />
      )}
    </section>
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
