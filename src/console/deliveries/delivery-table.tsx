import type { Delivery } from '../api/deliveries.ts';
import { shortId, visible } from '../base/format.ts';
import { linkTo } from '../base/router.ts';
import { StateBadge } from '../parts/badge.tsx';
import { Empty } from '../parts/notes.tsx';
import { onRowKey } from '../parts/rows.ts';
import { Time } from '../parts/time.tsx';

interface TableProps {
  link: readonly string[];
  shown: readonly Delivery[];
  has_sandboxes: boolean;
  chosen: ReadonlySet<string>;
  onChoose(chosen: ReadonlySet<string>): void;
}

/** Records, each of which can be chosen to be sent again. */
export function DeliveryTable({ link, shown, has_sandboxes, chosen, onChoose }: TableProps) {
  if (shown.length === 0) {
    return (
      <Empty title="No delivery is here">
        Records appear once a webhook is configured and something happens.
      </Empty>
    );
  }
  const toggle = (event_id: string) => {
    const next = new Set(chosen);
    if (!next.delete(event_id)) next.add(event_id);
    onChoose(next);
  };
  const final = shown.filter(({ state }) => state !== 'pending' && state !== 'foreign');
  const all = final.length > 0 && final.every(({ event_id }) => chosen.has(event_id));
  return (
    <div class="table-frame">
      <table class="table table-cards" onKeyDown={onRowKey}>
        <thead>
          <tr>
            <th scope="col">
              <label class="check">
                <input
                  type="checkbox"
                  checked={all}
                  onChange={() => onChoose(new Set(all ? [] : final.map(({ event_id }) => event_id)))}
                />
                <span class="unseen">Choose all that can be replayed</span>
              </label>
            </th>
            <th scope="col">Event</th>
            <th scope="col">State</th>
            <th scope="col">Last answer</th>
            <th scope="col" class="is-right">
              Attempts
            </th>
            {has_sandboxes && <th scope="col">Sandbox</th>}
            <th scope="col">Created</th>
            <th scope="col">Next</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((delivery) => (
            <Row
              key={delivery.event_id}
              delivery={delivery}
              link={link}
              has_sandboxes={has_sandboxes}
              is_chosen={chosen.has(delivery.event_id)}
              onToggle={toggle}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  delivery: Delivery;
  link: readonly string[];
  has_sandboxes: boolean;
  is_chosen: boolean;
  onToggle(event_id: string): void;
}

function Row({ delivery, link, has_sandboxes, is_chosen, onToggle }: RowProps) {
  const { event_id, event_type, state, sandbox_id, attempt_count, created_at, next_attempt_at } = delivery;
  const { last_status, last_error, last_error_detail } = delivery;
  const can_replay = state !== 'pending' && state !== 'foreign';
  return (
    <tr>
      <td>
        <label class="check">
          <input
            type="checkbox"
            disabled={!can_replay}
            checked={is_chosen}
            onChange={() => onToggle(event_id)}
          />
          <span class="unseen">Choose {event_id}</span>
        </label>
      </td>
      <td>
        <a class="row-link" href={linkTo([...link, event_id])}>
          {visible(event_type)}&nbsp;<code class="muted">{shortId(event_id)}</code>
        </a>
      </td>
      <td>
        <StateBadge state={state} />
      </td>
      <td class="is-wide">
        <div class="cut" title={visible(last_error_detail ?? '')}>
          {last_status !== null && <span class="number">{last_status} </span>}
          {last_error !== null && <span>{last_error} </span>}
          <span class="muted">{visible(last_error_detail ?? '')}</span>
        </div>
      </td>
      <td class="is-right number">
        {attempt_count}
        <span class="in-card"> {attempt_count === 1 ? 'attempt' : 'attempts'}</span>
      </td>
      {has_sandboxes && (
        <td>
          <a class="mono" href={linkTo(['sandboxes', sandbox_id ?? ''])}>
            {shortId(sandbox_id ?? '')}
          </a>
        </td>
      )}
      <td>
        <Time at={created_at} is_relative />
      </td>
      <td>{next_attempt_at === null ? '' : <Time at={next_attempt_at} is_relative />}</td>
    </tr>
  );
}
