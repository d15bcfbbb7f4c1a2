import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  label: string;
  value: string;
  onInput(value: string): void;
  hint?: ComponentChildren;
  /** What is wrong with the value. */
  wrong?: string | null | undefined;
  placeholder?: string;
  type?: 'text' | 'password' | 'number' | 'url';
  /** Several lines, this many shown. */
  rows?: number;
  is_first?: boolean;
}

/** A labelled field for a text. */
export function Field({ label, value, onInput, hint, wrong, rows, is_first, ...rest }: FieldProps) {
  const id = useId();
  const shared = {
    id,
    value,
    autocomplete: 'off',
    spellcheck: false,
    'aria-invalid': wrong ? ('true' as const) : undefined,
    'aria-describedby': wrong || hint ? `${id}-about` : undefined,
    autofocus: is_first,
    placeholder: rest.placeholder,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? (
        <input
          {...shared}
          class="input" // The kinds differ in nothing that is used here.
          type={(rest.type ?? 'text') as 'text'}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      ) : (
        <textarea
          {...shared}
          class="area"
          rows={rows}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
      {(wrong || hint) && (
        <span id={`${id}-about`} class={wrong ? 'wrong' : 'hint'}>
          {wrong || hint}
        </span>
      )}
    </div>
  );
}

interface SelectProps {
  label: string;
  value: string;
  options: readonly (string | [value: string, text: string])[];
  onChange(value: string): void;
  /** Whether the label is only read aloud. */
  is_bare?: boolean;
}

/** A labelled choice. */
export function Select({ label, value, options, onChange, is_bare = false }: SelectProps) {
  const id = useId();
  return (
    <div class={is_bare ? '' : 'field'}>
      <label for={id} class={is_bare ? 'unseen' : ''}>
        {label}
      </label>
      <select id={id} class="select" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => {
          const [each, text] = typeof option === 'string' ? [option, option] : option;
          return (
            <option key={each} value={each}>
              {text}
            </option>
          );
        })}
      </select>
    </div>
  );
}

/** A labelled switch. */
export function Check({
  label,
  checked,
  onChange,
}: {
  label: string;
  checked: boolean;
  onChange(value: boolean): void;
}) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}
