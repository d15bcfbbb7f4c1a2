import { useState } from 'preact/hooks';
import { refusal, signIn, token } from '../base/session.ts';
import { useStore } from '../base/store.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Check, Field } from '../parts/field.tsx';

/** Asks for a token where there is none, or none that the manager takes; what is on the page stays behind it. */
export function SignIn() {
  const held = useStore(token);
  const why = useStore(refusal);
  const [text, setText] = useState('');
  const [is_kept, setKept] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  if (held !== null && why === null) return null;
  const submit = () => {
    const value = text.trim();
    if (!/^[\x21-\x7e]+$/.test(value)) return setWrong('A token is one word of visible characters.');
    setText('');
    setWrong(null);
    signIn(value, is_kept);
  };
  return (
    <Dialog
      title={held === null ? 'Sign in' : 'Sign in again'}
      onClose={null}
      onSubmit={submit}
      actions={
        <button type="submit" class="button is-primary">
          Sign in
        </button>
      }
    >
      {why && (
        <p class="note is-warn" role="alert">
          {why} What you have typed is still here.
        </p>
      )}
      <Field
        label="Token of your team"
        type="password"
        value={text}
        onInput={setText}
        wrong={wrong}
        is_first
        hint={
          <>
            sandbox-manager token create --team … --scope sandboxes:write --scope webhooks:read --scope
            quota:read --scope usage:read
          </>
        }
      />
      <Check label="Keep it until this tab is closed" checked={is_kept} onChange={setKept} />
      <p class="muted">
        It is held in this page's memory alone, or, with the box ticked, in the tab's session storage. No
        cookie is set.
      </p>
    </Dialog>
  );
}
