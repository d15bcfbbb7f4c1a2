import { useEffect, useRef, useState } from 'preact/hooks';
import type { Attachment } from '../../client/streams/attachment.ts';
import type { Place } from '../api/place.ts';
import { type Problem, problemOf } from '../api/problem.ts';
import { visible } from '../base/format.ts';
import { useStore } from '../base/store.ts';
import { isDark } from '../base/theme.ts';
import { Badge } from '../parts/badge.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { ProblemNote } from '../parts/notes.tsx';
import type { Screen } from './screen.ts';

const STATES = { connecting: 'accent', live: 'good', waiting: 'warn', ended: 'idle' } as const;

type State = keyof typeof STATES;

interface PaneProps {
  place: Place;
  process_id: string;
  is_shown: boolean;
}

/** One terminal. It stays connected while another is shown. */
export function TerminalPane({ place, process_id, is_shown }: PaneProps) {
  const box = useRef<HTMLDivElement>(null);
  const leave = useRef<HTMLButtonElement>(null);
  const screen = useRef<Screen | null>(null);
  const [state, setState] = useState<State>('connecting');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [link, setLink] = useState<string | null>(null);
  const is_dark = useStore(isDark);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let end = () => {};
    let is_gone = false;
    void import('./screen.ts').then(({ openScreen }) => {
      if (is_gone) return;
      const attachment = place.sandbox.attach(process_id);
      const opened = openScreen(element, is_dark, {
        onType: (text) => {
          try {
            attachment.write(text);
          } catch (error) {
            setProblem(problemOf(error));
          }
        },
        onResize: (cols, rows) => attachment.resize(cols, rows),
        onLink: setLink,
        onLeave: () => leave.current?.focus(),
      });
      screen.current = opened;
      show(attachment, opened, setState).catch((error: unknown) => {
        if (is_gone) return;
        setState('ended');
        setProblem(problemOf(error));
      });
      const watching = new ResizeObserver(() => element.clientHeight > 0 && opened.fit());
      watching.observe(element);
      opened.fit();
      opened.focus();
      end = () => {
        watching.disconnect();
        attachment.close();
        opened.end();
        screen.current = null;
      };
    });
    return () => {
      is_gone = true;
      end();
    };
  }, [place, process_id]);
  useEffect(() => screen.current?.setDark(is_dark), [is_dark]);
  useEffect(() => {
    if (!is_shown) return;
    screen.current?.fit();
    screen.current?.focus();
  }, [is_shown]);

  return (
    <div class="terminal" hidden={!is_shown}>
      {problem && <ProblemNote problem={problem} />}
      <div ref={box} class="terminal-box" />
      <div class="pager">
        <Badge tone={STATES[state]} text={state} />
        <button ref={leave} type="button" class="button is-small" onClick={() => screen.current?.focus()}>
          Type in it
        </button>
        <span>
          <kbd>Ctrl Shift Escape</kbd> leaves the terminal · Ctrl and click opens a link
        </span>
      </div>
      {link !== null && (
        <Confirm
          title="Open this link?"
          verb="Open"
          run={async () => void window.open(link, '_blank', 'noopener,noreferrer')}
          onClose={() => setLink(null)}
          onDone={() => setLink(null)}
        >
          <p>A program in the sandbox has written it. It leads out of the console, to:</p>
          <code class="text">{link}</code>
        </Confirm>
      )}
    </div>
  );
}

/** Shows what an attached process writes, until it has ended. */
async function show(attachment: Attachment, screen: Screen, onState: (state: State) => void): Promise<void> {
  for await (const event of attachment) {
    if (event.type === 'connected') onState('live');
    if (event.type === 'lost') onState('waiting');
    if (event.type === 'output') await screen.write(event.bytes);
    if (event.type === 'gone') screen.note('[some of the output is no longer kept]');
    if (event.type === 'error') screen.note(`[${visible(event.error.message)}]`);
    if (event.type !== 'exit') continue;
    const { exit_code, signal } = event.process;
    screen.note(`[ended: ${signal ?? `exit ${exit_code ?? 'unknown'}`}]`);
    onState('ended');
  }
}
