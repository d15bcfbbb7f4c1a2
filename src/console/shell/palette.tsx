import { useEffect, useRef, useState } from 'preact/hooks';
import { useResource } from '../api/resource.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { goTo, linkTo } from '../base/router.ts';
import { program } from '../base/session.ts';
import { Store, useStore } from '../base/store.ts';
import { Dialog } from '../parts/dialog.tsx';
import { placesOf } from './places.ts';

/** Whether the quick way to views and sandboxes is open. */
export const palette = new Store(false);

const SANDBOXES_MAX = 200;
const SHOWN_MAX = 12;

/** The quick way to views and sandboxes, by typing a part of their names. */
export function Palette() {
  return useStore(palette) ? <Opened /> : null;
}

function Opened() {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const of = useStore(program) ?? 'manager';
  const newest = useResource(of === 'manager' ? 'palette' : null, (signal) =>
    sandboxes.list({ limit: SANDBOXES_MAX, offset: 0 }, signal),
  );
  useEffect(() => input.current?.focus(), []);
  const wanted = text.trim().toLowerCase();
  const all = [
    ...placesOf(of).map(({ text: name, segments }) => ({ name, link: linkTo(segments) })),
    ...(newest.data?.sandboxes ?? []).map(({ id, template_id, status }) => ({
      name: `${id}  ${template_id}  ${status}`,
      link: linkTo(['sandboxes', id]),
    })),
    ...(/^sbx_[0-9a-f-]{36}$/.test(wanted) ? [{ name: wanted, link: linkTo(['sandboxes', wanted]) }] : []),
  ];
  const found = all.filter(({ name }) => name.toLowerCase().includes(wanted)).slice(0, SHOWN_MAX);
  const close = () => palette.set(false);
  const open = (link: string | undefined) => {
    if (link === undefined) return;
    close();
    goTo(link);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setAt((before) => Math.max(0, Math.min(found.length - 1, before + step)));
  };
  return (
    <Dialog title="Go to" onClose={close} onSubmit={() => open(found[at]?.link)}>
      <input
        ref={input}
        class="input"
        value={text}
        role="combobox"
        aria-label="A view, or a part of a sandbox's id"
        aria-expanded="true"
        aria-controls="palette-found"
        aria-activedescendant={found[at] ? `palette-${at}` : undefined}
        autocomplete="off"
        placeholder="A view, or a part of a sandbox's id"
        onKeyDown={onKey}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
      />
      <div id="palette-found" class="choices" role="listbox" aria-label="Found">
        {found.map(({ name, link }, index) => (
          <div
            key={name}
            id={`palette-${index}`}
            class="choice mono"
            role="option"
            aria-selected={index === at}
            onClick={() => open(link)}
          >
            {name}
          </div>
        ))}
      </div>
    </Dialog>
  );
}
