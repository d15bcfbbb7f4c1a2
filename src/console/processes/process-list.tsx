import { useState } from 'preact/hooks';
import type { ProcessView } from '../../contract/processes.ts';
import type { Place } from '../api/place.ts';
import { processes } from '../api/processes.ts';
import { useResource } from '../api/resource.ts';
import { bytes, duration, plural, visible } from '../base/format.ts';
import { given, goTo, linkTo, useRoute } from '../base/router.ts';
import { Badge, StateBadge } from '../parts/badge.tsx';
import { CursorPages } from '../parts/cursor-pages.tsx';
import { Icon } from '../parts/icon.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Empty } from '../parts/notes.tsx';
import { onRowKey } from '../parts/rows.ts';
import { Time } from '../parts/time.tsx';
import { StartDialog } from './start-dialog.tsx';

const REFRESH_MS = 3_000;

/** The processes of a sandbox. */
export function ProcessList({ place }: { place: Place }) {
  const [text, setText] = useState('');
  const [is_starting, setStarting] = useState(false);
  const cursor = useRoute().query.get('cursor');
  const list = useResource(
    JSON.stringify(['processes', place.path, cursor]),
    (signal) => processes.list(place, given({ cursor }), signal),
    REFRESH_MS,
  );
  const wanted = text.toLowerCase();
  const found = (all: readonly ProcessView[]) =>
    all
      .filter((each) =>
        `${each.process_id} ${each.name ?? ''} ${each.command.join(' ')}`.toLowerCase().includes(wanted),
      )
      .toSorted((a, b) => (a.started_at < b.started_at ? 1 : -1));
  return (
    <section class="panel" aria-label="Processes">
      <div class="panel-head">
        <h2>Processes</h2>
        <div class="filters">
          <input
            class="input"
            data-key="slash"
            aria-label="Processes that contain"
            placeholder="name, id or command"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </div>
        <div class="actions">
          <button type="button" class="button is-primary" data-key="n" onClick={() => setStarting(true)}>
            <Icon name="plus" />
            Start
          </button>
        </div>
      </div>
      <Loaded resource={list}>
        {({ processes: all, next_cursor = null }) => (
          <>
            {all.length === 0 ? (
              <Empty title="No process has been started">Start one, or open a terminal.</Empty>
            ) : (
              <ProcessTable place={place} shown={found(all)} />
            )}
            {(next_cursor !== null || cursor !== null) && (
              <CursorPages cursor={cursor} next_cursor={next_cursor} words={['Newest', 'Older']} />
            )}
          </>
        )}
      </Loaded>
      {is_starting && (
        <StartDialog
          place={place}
          onClose={() => setStarting(false)}
          onStarted={(id) => goTo(linkTo([...place.link, 'processes', id]))}
        />
      )}
    </section>
  );
}

function ProcessTable({ place, shown }: { place: Place; shown: readonly ProcessView[] }) {
  return (
    <div class="table-frame">
      <table class="table table-cards" onKeyDown={onRowKey}>
        <thead>
          <tr>
            {['Process', 'State', 'Command', 'Memory', 'CPU', 'Started', 'Ran'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((process) => (
            <tr key={process.process_id}>
              <td>
                <a class="row-link" href={linkTo([...place.link, 'processes', process.process_id])}>
                  <bdi class="cut">{visible(process.name ?? process.process_id)}</bdi>
                </a>
              </td>
              <td>
                <Outcome process={process} />
              </td>
              <td class="is-wide">
                <div class="cut mono" title={visible(process.command.join(' '))}>
                  <bdi>{visible(process.command.join(' '))}</bdi>
                </div>
              </td>
              <td class="number muted">
                {process.exited_at === null ? bytes(process.resource_usage.memory_bytes) : ''}
              </td>
              <td class="number muted">{duration(process.resource_usage.cpu_ms)}</td>
              <td>
                <Time at={process.started_at} is_relative />
              </td>
              <td class="number muted">
                {process.duration_ms === null ? '' : duration(process.duration_ms)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length === 0 && <Empty title="None contains that" />}
      <div class="pager number">{plural(shown.length, 'process').replace('processs', 'processes')}</div>
    </div>
  );
}

/** The state of a process, and how it ended. */
export function Outcome({ process }: { process: ProcessView }) {
  const { state, exit_code, signal, timed_out, restart_count } = process;
  return (
    <span class="actions">
      {state === 'exited' && exit_code !== null ? (
        <Badge tone={exit_code === 0 ? 'good' : 'bad'} text={timed_out ? 'timed out' : `exit ${exit_code}`} />
      ) : (
        <StateBadge state={state} />
      )}
      {signal !== null && <span class="muted">{signal}</span>}
      {restart_count > 0 && <span class="muted">run {restart_count + 1}</span>}
    </span>
  );
}
