import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import { type StreamState, useStream } from '../api/follow.ts';
import type { Place } from '../api/place.ts';
import { processes } from '../api/processes.ts';
import { count, plural } from '../base/format.ts';
import { useDrawing } from '../base/use-drawing.ts';
import { Badge } from '../parts/badge.tsx';
import { save } from '../parts/download.ts';
import { Select } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';
import { type LineStyle, Lines } from '../parts/lines.tsx';
import { Empty, ProblemNote } from '../parts/notes.tsx';
import { tell } from '../parts/toasts.tsx';
import { type OutputLine, OutputLog } from './output-log.ts';

const HEIGHT_PX = 18;
const STATES = { connecting: 'accent', live: 'good', waiting: 'warn', ended: 'idle' } as const;

interface OutputProps {
  place: Place;
  process_id: string;
  onExit(): void;
}

/** The output of a process: followed, searched, and saved. */
export function OutputView({ place, process_id, onExit }: OutputProps) {
  const { lines, dropped, state } = useOutput(place, process_id, onExit);
  const [stream, setStream] = useState('');
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [is_following, setFollowing] = useState(true);
  const shown = useMemo(
    () => (stream === '' ? lines : lines.filter((line) => line.stream === stream)),
    [lines, stream],
  );
  const found = useMemo(() => placesOf(shown, text), [shown, text]);
  const current =
    found.length === 0 ? null : (found[((at % found.length) + found.length) % found.length] ?? null);
  const row = useCallback(
    (line: OutputLine, index: number, style: LineStyle) => (
      <Line key={line.number} line={line} style={style} wanted={text} is_current={index === current} />
    ),
    [text, current],
  );
  const step = (by: number) => {
    setFollowing(false);
    setAt((before) => before + by);
  };
  const download = (which: 'stdout' | 'stderr') =>
    tell(async () => {
      const response = await processes.output(place, process_id, which);
      save(`${process_id}.${which}`, [await response.blob()]);
    }, `${which} saved`);
  return (
    <section class="panel" aria-label="Output">
      <div class="panel-head">
        <h2>Output</h2>
        <Badge tone={STATES[state.state]} text={state.state} />
        <form
          class="filters"
          onSubmit={(event) => {
            event.preventDefault();
            step(1);
          }}
        >
          <input
            class="input"
            data-key="slash"
            aria-label="Search in the output"
            placeholder="search"
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setAt(0);
              setFollowing(event.currentTarget.value === '');
            }}
          />
          <Select
            label="Stream"
            is_bare
            value={stream}
            options={[['', 'both'], 'stdout', 'stderr']}
            onChange={setStream}
          />
          {text !== '' && (
            <>
              <span class="muted number" role="status">
                {plural(found.length, 'line')}
              </span>
              <button type="button" class="button is-small" onClick={() => step(-1)}>
                Previous
              </button>
              <button type="submit" class="button is-small">
                Next
              </button>
            </>
          )}
        </form>
        <div class="actions">
          <button
            type="button"
            class="button is-small"
            aria-pressed={is_following}
            onClick={() => setFollowing(!is_following)}
          >
            {is_following ? 'Following' : 'Follow'}
          </button>
          {(['stdout', 'stderr'] as const).map((which) => (
            <button key={which} type="button" class="button is-small" onClick={() => void download(which)}>
              <Icon name="down" />
              {which}
            </button>
          ))}
        </div>
      </div>
      {state.problem && (
        <div class="panel-body">
          <ProblemNote problem={state.problem} />
        </div>
      )}
      {dropped > 0 && (
        <p class="pager">
          {count(dropped)} earlier lines are not shown here; save the output to have all that the daemon
          keeps.
        </p>
      )}
      {shown.length === 0 ? (
        <Empty title="It has written nothing yet" />
      ) : (
        <Lines
          label="Output"
          class="is-output"
          items={shown}
          height={HEIGHT_PX}
          is_following={is_following}
          onFollow={setFollowing}
          shown={is_following ? null : current}
        >
          {row}
        </Lines>
      )}
    </section>
  );
}

interface LineProps {
  line: OutputLine;
  style: LineStyle;
  wanted: string;
  is_current: boolean;
}

function Line({ line, style, wanted, is_current }: LineProps) {
  const at = wanted === '' ? -1 : line.text.toLowerCase().indexOf(wanted.toLowerCase());
  return (
    <div
      class={`line mono${line.stream === 'stderr' ? ' is-error' : ''}${is_current ? ' is-current' : ''}`}
      style={style}
      dir="ltr"
    >
      <span class="grow">
        {at < 0 ? (
          line.text
        ) : (
          <>
            {line.text.slice(0, at)}
            <mark>{line.text.slice(at, at + wanted.length)}</mark>
            {line.text.slice(at + wanted.length)}
          </>
        )}
      </span>
    </div>
  );
}

function placesOf(lines: readonly OutputLine[], text: string): number[] {
  if (text === '') return [];
  const wanted = text.toLowerCase();
  const places: number[] = [];
  for (const [index, line] of lines.entries())
    if (line.text.toLowerCase().includes(wanted)) places.push(index);
  return places;
}

/** What a process has written, and goes on writing. */
interface FollowedOutput {
  lines: readonly OutputLine[];
  /** Lines that came before those that are kept. */
  dropped: number;
  state: StreamState;
}

/** Follows the output of a process until it has ended. It is drawn a few times a second, however much it is. */
function useOutput({ path, sandbox }: Place, process_id: string, onExit: () => void): FollowedOutput {
  const [shown, setShown] = useState<Omit<FollowedOutput, 'state'>>({ lines: [], dropped: 0 });
  const log = useRef(new OutputLog());
  const drawing = useDrawing(() => setShown({ lines: log.current.lines(), dropped: log.current.dropped }));
  const state = useStream(`${path} ${process_id}`, async (signal, onConnection) => {
    log.current = new OutputLog();
    for await (const event of sandbox.output(process_id, { stream: 'all', signal, onConnection })) {
      if (signal.aborted) return;
      if (event.type === 'output') log.current.add(event.stream, event.bytes);
      if (event.type === 'exit') onExit();
      drawing.ask();
    }
  });
  return { ...shown, state };
}
