import { useState } from 'preact/hooks';
import type { Place } from '../api/place.ts';
import { type Problem, problemOf } from '../api/problem.ts';
import { processes } from '../api/processes.ts';
import { useResource } from '../api/resource.ts';
import { visible } from '../base/format.ts';
import { setQuery, useRoute } from '../base/router.ts';
import { Field } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { Empty, ProblemNote } from '../parts/notes.tsx';
import { TerminalPane } from './terminal-pane.tsx';

const REFRESH_MS = 5_000;
const SIZE = { cols: 80, rows: 24 };
const SHELL = 'if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi';
const NAME = 'terminal';

/** Terminals in a sandbox. Each is a process with a pty: leaving the page leaves it running, and a link leads back to it. */
export function TerminalView({ place }: { place: Place }) {
  const { query } = useRoute();
  const chosen = query.get('process');
  const [command, setCommand] = useState('');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [opened, setOpened] = useState<readonly string[]>(chosen === null ? [] : [chosen]);
  const list = useResource(
    `terminals ${place.path}`,
    (signal) => processes.list(place, {}, signal),
    REFRESH_MS,
  );
  const running = (list.data?.processes ?? [])
    .toReversed()
    .filter(
      ({ name, state, process_id }) => name === NAME && (state === 'running' || opened.includes(process_id)),
    );
  const ids = [...new Set([...running.map(({ process_id }) => process_id), ...opened])];
  const show = (process_id: string) => {
    setOpened((before) => (before.includes(process_id) ? before : [...before, process_id]));
    setQuery({ process: process_id });
  };
  const start = async () => {
    setProblem(null);
    try {
      const shell = command.trim() === '' ? SHELL : command;
      const { process_id } = await processes.start(place, {
        shell,
        name: NAME,
        pty: SIZE,
        stdin: 'pipe',
        env: { TERM: 'xterm-256color' },
      });
      setCommand('');
      list.reload();
      show(process_id);
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return (
    <section class="panel" aria-label="Terminals">
      <div class="panel-head">
        <h2 class="unseen">Terminals</h2>
        <div class="actions terminal-tabs">
          {ids.map((process_id, index) => (
            <button
              key={process_id}
              type="button"
              class="button is-small"
              aria-pressed={process_id === chosen}
              title={visible(process_id)}
              onClick={() => show(process_id)}
            >
              <Icon name="terminal" />
              {index + 1}
            </button>
          ))}
        </div>
        <form
          class="actions"
          onSubmit={(event) => {
            event.preventDefault();
            void start();
          }}
        >
          <Field label="Command" value={command} placeholder="a shell" onInput={setCommand} />
          <button type="submit" class="button is-primary" data-key="n">
            <Icon name="plus" />
            New terminal
          </button>
        </form>
      </div>
      {(problem ?? list.problem) && (
        <div class="panel-body">
          <ProblemNote problem={(problem ?? list.problem) as Problem} />
        </div>
      )}
      {chosen === null ? (
        <Empty title="No terminal is shown">
          Open a new one, or choose one that runs. It goes on when you leave.
        </Empty>
      ) : (
        opened.map((process_id) => (
          <TerminalPane
            key={process_id}
            place={place}
            process_id={process_id}
            is_shown={process_id === chosen}
          />
        ))
      )}
    </section>
  );
}
