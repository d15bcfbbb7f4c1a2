import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import { EVENT_TYPES } from '../../contract/events.ts';
import { count, shortId } from '../base/format.ts';
import { linkTo } from '../base/router.ts';
import { Badge } from '../parts/badge.tsx';
import { Copy } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Select } from '../parts/field.tsx';
import { prettyJson } from '../parts/json.ts';
import { type LineStyle, Lines } from '../parts/lines.tsx';
import { Empty, ProblemNote } from '../parts/notes.tsx';
import { type EventLine, Finder } from './log.ts';
import { type EventSource, useEvents } from './use-events.ts';

const HEIGHT_PX = 30;
const STATES = { connecting: 'accent', live: 'good', waiting: 'warn', ended: 'idle' } as const;

/** Events as they come, with those that are kept before them. */
export function EventList({ source, shows_sandbox }: { source: EventSource; shows_sandbox: boolean }) {
  const { lines, state, is_paused, setPaused, clear } = useEvents(source);
  const [kind, setKind] = useState('');
  const [text, setText] = useState('');
  const [is_following, setFollowing] = useState(true);
  const [shown, setShown] = useState<EventLine | null>(null);
  const finder = useRef(new Finder());
  const found = useMemo(() => finder.current.find(lines, { kind, text }), [lines, kind, text]);
  const row = useCallback(
    (line: EventLine, _index: number, style: LineStyle) => (
      <button
        key={line.key}
        type="button"
        class="line is-button"
        style={style}
        onClick={() => setShown(line)}
      >
        <span class="number muted event-time" title={`${line.timestamp} (UTC)`}>
          {line.clock}
        </span>
        <span class="event-kind">{line.event_type}</span>
        {shows_sandbox && <code class="muted event-sandbox">{shortId(line.sandbox_id)}</code>}
        <bdi class="grow mono">{line.summary}</bdi>
      </button>
    ),
    [shows_sandbox],
  );
  return (
    <section class="panel" aria-label="Events">
      <div class="panel-head">
        <Badge tone={STATES[state.state]} text={state.state} />
        <span class="muted number">{count(found.length)} shown</span>
        <div class="filters">
          <input
            class="input"
            data-key="slash"
            aria-label="Events that contain"
            placeholder="contains…"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <Select
            label="Kind"
            is_bare
            value={kind}
            options={[['', 'Every kind'], ...EVENT_TYPES]}
            onChange={setKind}
          />
        </div>
        <div class="actions">
          {!is_following && (
            <button type="button" class="button is-small" onClick={() => setFollowing(true)}>
              Follow
            </button>
          )}
          <button
            type="button"
            class="button is-small"
            aria-pressed={is_paused}
            onClick={() => setPaused(!is_paused)}
          >
            {is_paused ? 'Go on' : 'Hold'}
          </button>
          <button type="button" class="button is-small" onClick={clear}>
            Clear
          </button>
        </div>
      </div>
      {state.problem && (
        <div class="panel-body">
          <ProblemNote problem={state.problem} />
        </div>
      )}
      {found.length === 0 ? (
        <Empty title="No events yet">They appear here as they are committed.</Empty>
      ) : (
        <Lines
          label="Events"
          items={found}
          height={HEIGHT_PX}
          is_following={is_following}
          onFollow={setFollowing}
        >
          {row}
        </Lines>
      )}
      {shown && <EventDialog line={shown} shows_sandbox={shows_sandbox} onClose={() => setShown(null)} />}
    </section>
  );
}

interface DialogProps {
  line: EventLine;
  shows_sandbox: boolean;
  onClose(): void;
}

function EventDialog({ line, shows_sandbox, onClose }: DialogProps) {
  return (
    <Dialog title={line.event_type} is_wide onClose={onClose}>
      <div class="actions">
        <code>{line.key}</code>
        <Copy text={line.body} label="Copy the body" />
        {shows_sandbox && <a href={linkTo(['sandboxes', line.sandbox_id])}>Open its sandbox</a>}
      </div>
      <pre class="code" tabIndex={0}>
        {prettyJson(line.body)}
      </pre>
    </Dialog>
  );
}
