import { useState } from 'preact/hooks';
import type { ProcessView as Process } from '../../contract/processes.ts';
import type { Place } from '../api/place.ts';
import { processes } from '../api/processes.ts';
import { useResource } from '../api/resource.ts';
import { bytes, duration, visible } from '../base/format.ts';
import { linkTo } from '../base/router.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Id } from '../parts/copy.tsx';
import { Facts } from '../parts/facts.tsx';
import { Select } from '../parts/field.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Time } from '../parts/time.tsx';
import { tell } from '../parts/toasts.tsx';
import { OutputView } from './output-view.tsx';
import { Outcome } from './process-list.tsx';

const REFRESH_MS = 2_000;
const SIGNALS = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGSTOP',
  'SIGCONT',
  'SIGKILL',
];

/** One process: what it is, what it writes, and what can be done to it. */
export function ProcessView({ place, process_id }: { place: Place; process_id: string }) {
  const one = useResource(
    `process ${place.path} ${process_id}`,
    (signal) => processes.one(place, process_id, signal),
    REFRESH_MS,
  );
  return (
    <div class="page">
      <header class="page-head">
        <div class="title">
          <a class="crumb" href={linkTo([...place.link, 'processes'])}>
            Processes
          </a>
          <span class="muted" aria-hidden="true">
            /
          </span>
          <h2>
            <bdi>{visible(one.data?.name ?? process_id)}</bdi>
          </h2>
          {one.data && <Outcome process={one.data} />}
        </div>
        {one.data && <Controls place={place} process={one.data} onChange={one.reload} />}
      </header>
      <Loaded resource={one}>
        {(process) => (
          <>
            <section class="panel" aria-label="Process">
              <div class="panel-body">
                <About process={process} />
              </div>
            </section>
            <OutputView key={process_id} place={place} process_id={process_id} onExit={one.reload} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function About({ process }: { process: Process }) {
  const { process_id, pid, command, cwd, user, started_at, exited_at, duration_ms, resource_usage } = process;
  return (
    <Facts
      facts={[
        ['Id', <Id key="id" id={process_id} />],
        [
          'Command',
          <code key="command" class="text">
            {visible(command.join(' '))}
          </code>,
        ],
        ['Directory', <code key="cwd">{visible(cwd)}</code>],
        user === null ? null : ['User', <code key="user">{visible(user)}</code>],
        ['Started', <Time key="started" at={started_at} />],
        exited_at === null ? null : ['Ended', <Time key="ended" at={exited_at} />],
        duration_ms === null ? null : ['Ran', duration(duration_ms)],
        [
          'Uses',
          <span key="uses" class="number">
            pid {pid} · {bytes(resource_usage.memory_bytes)} · {duration(resource_usage.cpu_ms)} of CPU ·{' '}
            {resource_usage.processes} in its tree
          </span>,
        ],
      ]}
    />
  );
}

interface ControlsProps {
  place: Place;
  process: Process;
  onChange(): void;
}

function Controls({ place, process, onChange }: ControlsProps) {
  const [signal, setSignal] = useState('SIGTERM');
  const [is_stopping, setStopping] = useState(false);
  const { process_id, state } = process;
  if (state !== 'running' && state !== 'restarting' && state !== 'paused') return null;
  return (
    <>
      <div class="actions">
        <Select label="Signal" is_bare value={signal} options={SIGNALS} onChange={setSignal} />
        <button
          type="button"
          class="button"
          onClick={() =>
            void tell(() => processes.signal(place, process_id, signal), `${signal} sent`).then(onChange)
          }
        >
          Send
        </button>
        <button type="button" class="button is-danger" onClick={() => setStopping(true)}>
          Stop
        </button>
      </div>
      {is_stopping && (
        <Confirm
          title="Stop this process?"
          verb="Stop"
          is_danger
          run={() => processes.stop(place, process_id)}
          onClose={() => setStopping(false)}
          onDone={() => {
            setStopping(false);
            onChange();
          }}
        >
          <code class="text">{visible(process.command.join(' '))}</code>
          <p>Everything that it started gets SIGTERM, and SIGKILL where it has not ended within 10 s.</p>
        </Confirm>
      )}
    </>
  );
}
