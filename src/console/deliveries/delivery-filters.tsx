import { useId, useState } from 'preact/hooks';
import { EVENT_TYPES } from '../../contract/events.ts';
import { DELIVERY_STATES } from '../../contract/words.ts';
import type { Delivery, Outbox } from '../api/deliveries.ts';
import { useResource } from '../api/resource.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { setQuery } from '../base/router.ts';
import { Select } from '../parts/field.tsx';

/** Sandboxes whose webhooks are offered. */
const OFFERED_MAX = 200;

interface FiltersProps {
  outbox: Outbox;
  query: URLSearchParams;
  /** The records of the page, whose sandboxes are offered. */
  shown: readonly Delivery[];
}

/** Narrows a list of deliveries; what is set is in the link. */
export function DeliveryFilters({ outbox, query, shown }: FiltersProps) {
  return (
    <div class="filters" role="group" aria-label="Filter">
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
      {outbox === null && <TeamFilters query={query} shown={shown} />}
    </div>
  );
}

/** A sandbox has one endpoint; a team's deliveries go to many. */
function TeamFilters({ query, shown }: Omit<FiltersProps, 'outbox'>) {
  const newest = useResource('webhooks', (signal) =>
    sandboxes.list({ limit: OFFERED_MAX, offset: 0 }, signal),
  );
  const urls = newest.data?.sandboxes.flatMap(({ webhook }) => webhook?.url ?? []) ?? [];
  return (
    <>
      <Choice
        key={`sandbox ${query.get('sandbox')}`}
        label="Sandbox"
        placeholder="a sandbox's id"
        value={query.get('sandbox') ?? ''}
        offered={shown.flatMap(({ sandbox_id }) => sandbox_id ?? [])}
        is_first
        onChoose={(sandbox) => setQuery({ sandbox, cursor: null })}
      />
      <Choice
        key={`endpoint ${query.get('endpoint')}`}
        label="Endpoint"
        placeholder="an endpoint's URL"
        value={query.get('endpoint') ?? ''}
        offered={urls}
        onChoose={(endpoint) => setQuery({ endpoint, cursor: null })}
      />
    </>
  );
}

interface ChoiceProps {
  label: string;
  placeholder: string;
  value: string;
  offered: readonly string[];
  is_first?: boolean;
  onChoose(value: string): void;
}

/** A text that is taken with Enter, or from those that are offered. */
function Choice({ label, placeholder, value, offered, is_first = false, onChoose }: ChoiceProps) {
  const [text, setText] = useState(value);
  const id = useId();
  const all = [...new Set(offered)];
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onChoose(text.trim());
      }}
    >
      <input
        class="input"
        type="search"
        data-key={is_first ? 'slash' : undefined}
        aria-label={label}
        placeholder={placeholder}
        list={id}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => {
          const next = event.currentTarget.value.trim();
          if (next === '' || all.includes(next)) onChoose(next);
        }}
      />
      <datalist id={id}>
        {all.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </form>
  );
}
