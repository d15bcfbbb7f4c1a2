import { setQuery } from '../base/router.ts';

interface CursorPagesProps {
  /** The shown page's; null for the first. */
  cursor: string | null;
  /** Null: the shown page is the last. */
  next_cursor: string | null;
  words: readonly [first: string, next: string];
}

/** Leads to the first and the next page of a list, by the address's `cursor`. */
export function CursorPages({ cursor, next_cursor, words: [first, next] }: CursorPagesProps) {
  return (
    <nav class="pager" aria-label="Pages">
      <div class="actions">
        <button
          type="button"
          class="button is-small"
          disabled={cursor === null}
          onClick={() => setQuery({ cursor: null })}
        >
          {first}
        </button>
        <button
          type="button"
          class="button is-small"
          disabled={next_cursor === null}
          onClick={() => setQuery({ cursor: next_cursor })}
        >
          {next}
        </button>
      </div>
    </nav>
  );
}
