import { useState } from 'preact/hooks';
import { after } from '../base/clock.ts';
import { Icon } from './icon.tsx';

const SHOWN_MS = 1_500;

/** A button that copies a text. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [is_copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    after(SHOWN_MS, () => setCopied(false));
  };
  return (
    <button
      type="button"
      class="button is-plain is-small is-icon"
      aria-label={is_copied ? 'Copied' : label}
      title={is_copied ? 'Copied' : label}
      onClick={() => void copy().catch(() => setCopied(false))}
    >
      {is_copied ? <span aria-hidden="true">✓</span> : <Icon name="copy" />}
    </button>
  );
}

/** An id with a button that copies it. */
export function Id({ id }: { id: string }) {
  return (
    <span class="actions">
      <code>{id}</code>
      <Copy text={id} label="Copy id" />
    </span>
  );
}
