import { useState } from 'preact/hooks';
import { isSandboxId } from '../../contract/ids.ts';
import { MANAGED_STATUSES } from '../../contract/words.ts';
import { goTo, linkTo, setQuery } from '../base/router.ts';
import { Select } from '../parts/field.tsx';
import { Icon } from '../parts/icon.tsx';

/** What a word in the filter means: an id, a pair of metadata, or a template. */
function meaningOf(word: string): { id?: string; metadata?: string; template?: string } {
  if (isSandboxId(word)) return { id: word };
  if (/^[A-Za-z0-9_./-]{1,63}:/.test(word)) return { metadata: word };
  return { template: word };
}

/** Narrows the list of sandboxes; what is set is in the link. */
export function SandboxFilters({ query }: { query: URLSearchParams }) {
  const [text, setText] = useState('');
  const metadata = query.getAll('metadata');
  const template = query.get('template');
  const submit = () => {
    const word = text.trim();
    if (word === '') return;
    const meaning = meaningOf(word);
    setText('');
    if (meaning.id !== undefined) return goTo(linkTo(['sandboxes', meaning.id]));
    const pairs = meaning.metadata === undefined ? metadata : [...metadata, meaning.metadata];
    setQuery({ metadata: pairs, template: meaning.template ?? template, offset: null });
  };
  return (
    <form
      class="filters"
      aria-label="Filter"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <input
        class="input"
        data-key="slash"
        aria-label="A metadata pair key:text, a template, or an id"
        placeholder="key:text, template or id"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Select
        label="Status"
        is_bare
        value={query.get('status') ?? ''}
        options={[['', 'Any status'], ...MANAGED_STATUSES]}
        onChange={(status) => setQuery({ status, offset: null })}
      />
      {template !== null && (
        <Chip text={`template ${template}`} onRemove={() => setQuery({ template: null, offset: null })} />
      )}
      {metadata.map((pair) => (
        <Chip
          key={pair}
          text={pair}
          onRemove={() => setQuery({ metadata: metadata.filter((each) => each !== pair), offset: null })}
        />
      ))}
    </form>
  );
}

function Chip({ text, onRemove }: { text: string; onRemove(): void }) {
  return (
    <button type="button" class="button is-small" title="Take this filter away" onClick={onRemove}>
      <bdi>{text}</bdi>
      <Icon name="close" />
      <span class="unseen">Take this filter away</span>
    </button>
  );
}
