import { useEffect, useRef, useState } from 'preact/hooks';
import { useStore } from '../base/store.ts';
import { isDark } from '../base/theme.ts';
import { Badge } from '../parts/badge.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { Attachment, type AttachmentState } from './attachment.ts';
import type { Screen } from './screen.ts';

const STATES = { connecting: 'accent', live: 'good', waiting: 'warn', ended: 'idle' } as const;

/** One terminal. It stays connected while another is shown. */
export function TerminalPane({ path, is_shown }: { path: string; is_shown: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const leave = useRef<HTMLButtonElement>(null);
  const screen = useRef<Screen | null>(null);
  const [state, setState] = useState<AttachmentState>('connecting');
  const [link, setLink] = useState<string | null>(null);
  const is_dark = useStore(isDark);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let end = () => {};
    let is_gone = false;
    void import('./screen.ts').then(({ openScreen }) => {
      if (is_gone) return;
      let attachment: Attachment | null = null;
      const opened = openScreen(element, is_dark, {
        onType: (text) => attachment?.write(text),
        onResize: (cols, rows) => attachment?.resize(cols, rows),
        onLink: setLink,
        onLeave: () => leave.current?.focus(),
      });
      screen.current = opened;
      attachment = new Attachment(path, {
        onOutput: (bytes) => opened.write(bytes),
        onState: setState,
        onExit: (outcome) => opened.note(`[ended: ${outcome}]`),
      });
      const watching = new ResizeObserver(() => element.clientHeight > 0 && opened.fit());
      watching.observe(element);
      opened.fit();
      opened.focus();
      const attached = attachment;
      end = () => {
        watching.disconnect();
        attached.close();
        opened.end();
        screen.current = null;
      };
    });
    return () => {
      is_gone = true;
      end();
    };
  }, [path]);
  useEffect(() => screen.current?.setDark(is_dark), [is_dark]);
  useEffect(() => {
    if (!is_shown) return;
    screen.current?.fit();
    screen.current?.focus();
  }, [is_shown]);

  return (
    <div class="terminal" hidden={!is_shown}>
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
