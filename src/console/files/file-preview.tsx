import { useState } from 'preact/hooks';
import { files } from '../api/files.ts';
import type { Place } from '../api/place.ts';
import { type Problem, problemOf } from '../api/problem.ts';
import { useResource } from '../api/resource.ts';
import { bytes, visible, visibleLines } from '../base/format.ts';
import { setQuery } from '../base/router.ts';
import { Icon } from '../parts/icon.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ProblemNote } from '../parts/notes.tsx';
import { say } from '../parts/toasts.tsx';
import { hexDump, type Looked, look, PREVIEW_MAX_BYTES } from './look.ts';

interface PreviewProps {
  place: Place;
  path: string;
  onChange(): void;
}

/** A file as text, or as bytes where it is none; small text can be edited. Nothing of it is rendered. */
export function FilePreview({ place, path, onChange }: PreviewProps) {
  const [is_editing, setEditing] = useState(false);
  const looked = useResource(`look ${place.path} ${path}`, async (signal) =>
    look(await files.readStart(place, { path }, signal, PREVIEW_MAX_BYTES)),
  );
  const close = () => setQuery({ open: null });
  return (
    <section class="panel" aria-label="File">
      <div class="panel-head">
        <h2 class="mono">
          <bdi>{visible(path)}</bdi>
        </h2>
        {looked.data && <span class="muted number">{bytes(looked.data.size)}</span>}
        <div class="actions">
          {looked.data?.can_edit && !is_editing && (
            <button type="button" class="button is-small" onClick={() => setEditing(true)}>
              Edit
            </button>
          )}
          <button
            type="button"
            class="button is-plain is-icon is-small"
            aria-label="Close the file"
            onClick={close}
          >
            <Icon name="close" />
          </button>
        </div>
      </div>
      <Loaded resource={looked}>
        {(data) =>
          is_editing ? (
            <Editor
              place={place}
              path={path}
              looked={data}
              onEnd={() => {
                setEditing(false);
                looked.reload();
                onChange();
              }}
            />
          ) : (
            <Shown looked={data} />
          )
        }
      </Loaded>
    </section>
  );
}

function Shown({ looked }: { looked: Looked }) {
  const text = looked.text === null ? hexDump(looked.bytes) : visibleLines(looked.text);
  return (
    <>
      <pre
        class={`code is-flat${looked.text === null ? ' is-hex' : ''}`}
        tabIndex={0}
        aria-label="Content"
        role="group"
      >
        {text === '' ? <span class="muted">(empty)</span> : text}
      </pre>
      {looked.is_cut && (
        <p class="pager">
          The first {bytes(looked.bytes.length)} are shown; save the file to have all of it.
        </p>
      )}
    </>
  );
}

interface EditorProps {
  place: Place;
  path: string;
  looked: Looked;
  onEnd(): void;
}

function Editor({ place, path, looked, onEnd }: EditorProps) {
  const [text, setText] = useState(looked.text ?? '');
  // What the text was read with; it stays when the file is loaded again.
  const [etag, setEtag] = useState(looked.etag);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [is_saving, setSaving] = useState(false);
  const save = async (condition: string) => {
    setSaving(true);
    setProblem(null);
    try {
      await files.write(place, { path }, text, condition);
      say(`Saved: ${visible(path)}`);
      onEnd();
    } catch (error) {
      setProblem(problemOf(error));
      setSaving(false);
    }
  };
  const overwrite = async () => {
    const response = await files.readStart(place, { path }, AbortSignal.timeout(10_000), 1);
    await response.body?.cancel();
    const now = response.headers.get('etag') ?? '*';
    setEtag(now);
    await save(now);
  };
  const is_conflict = problem?.code === 'precondition_failed';
  return (
    <form
      class="panel-body stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save(etag);
      }}
    >
      <textarea
        class="area"
        rows={22}
        aria-label="Text of the file"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {is_conflict ? (
        <div class="note is-warn" role="alert">
          <strong>The file has changed meanwhile</strong>
          <span>
            Somebody else has written it since it was opened here. Your text is still in the field above.
          </span>
          <div class="actions">
            <button
              type="button"
              class="button is-small is-danger"
              onClick={() => void overwrite().catch((error) => setProblem(problemOf(error)))}
            >
              Write mine over it
            </button>
            <button type="button" class="button is-small" onClick={onEnd}>
              Take theirs
            </button>
          </div>
        </div>
      ) : (
        problem && <ProblemNote problem={problem} />
      )}
      <div class="actions">
        <button type="submit" class="button is-primary" disabled={is_saving}>
          {is_saving ? 'Saving…' : 'Save'}
        </button>
        <button type="button" class="button" onClick={onEnd}>
          Cancel
        </button>
      </div>
    </form>
  );
}
