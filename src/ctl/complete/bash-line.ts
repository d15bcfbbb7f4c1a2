/** A command line up to the cursor, as bash reads it. */
export interface BashLine {
  /** The words without their quotes; the last is the one at the cursor. */
  words: string[];
  /** How the word at the cursor goes on: outside of quotes, or inside of open ones. */
  quote: '' | "'" | '"';
  /** How many characters of that word stay: bash replaces what comes after. */
  kept: number;
}

const BLANK = /\s/;
/** Characters by which bash would make something else of the word at the cursor. */
const EXPANDED = /[$`*?[\]{}~]/;
/** What needs no backslash outside of quotes. */
const PLAIN = /[A-Za-z0-9_@%+=:,./\u00a1-\u{10ffff}-]/u;
/** What means itself in either kind of quotes. */
const QUOTABLE = /^[A-Za-z0-9_@%+=:,./ \u00a1-\u{10ffff}-]*$/u;

/**
 * Reads a command line up to the cursor and expands nothing. `breaks` is bash's `COMP_WORDBREAKS`: what follows one of
 * them outside of quotes is replaced by itself. Null where the word at the cursor is none that can be completed: it holds
 * an expansion, or quotes that are closed.
 */
export function readBashLine(line: string, breaks: string): BashLine | null {
  const words = [''];
  let quote: BashLine['quote'] = '';
  let kept = 0;
  let is_clear = true;
  const add = (text: string) => {
    words[words.length - 1] += text;
  };
  for (let i = 0; i < line.length; i++) {
    const each = line[i] as string;
    if (each === '\\' && quote !== "'") add(line[++i] ?? '');
    else if (quote !== '' && each === quote) {
      quote = '';
      is_clear = false;
    } else if (quote === '' && (each === "'" || each === '"')) {
      is_clear &&= words.at(-1)?.length === 0;
      quote = each;
    } else if (quote === '' && BLANK.test(each)) {
      if (words.at(-1) !== '' || !is_clear) words.push('');
      [kept, is_clear] = [0, true];
    } else {
      add(each);
      if (quote !== "'" && EXPANDED.test(each)) is_clear = false;
      if (quote === '' && breaks.includes(each)) kept = words.at(-1)?.length ?? 0;
    }
  }
  return is_clear ? { words, quote, kept } : null;
}

/**
 * A word as bash inserts it at the cursor of a line, so that it stays this very word whatever characters it holds; null
 * where that cannot be done within the open quotes. The word must begin as the one at the cursor.
 */
export function bashReplacement(word: string, { quote, kept }: BashLine): string | null {
  const rest = word.slice(kept);
  if (quote !== '') return QUOTABLE.test(rest) ? rest : null;
  return Array.from(rest, (each) => (PLAIN.test(each) ? each : `\\${each}`)).join('');
}
