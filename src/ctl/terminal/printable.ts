import stringWidth from 'string-width';

/** Control characters, line and paragraph separators, and characters that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
/** What has one column a character: most of what is shown, and measured much faster. */
const PLAIN = /^[ -~]*$/;
/** The widths of the latest other texts: a column mostly repeats itself, and measuring takes long. */
const WIDTHS = new Map<string, number>();
const WIDTHS_MAX = 1_000;
const REMEMBERED_MAX_CHARACTERS = 1_000;
const GRAPHEMES = new Intl.Segmenter();

/** The text on one line, with every character escaped that a terminal would act upon instead of showing. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    if (character === '\n' || character === '\r' || character === '\t') return ' ';
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The number of terminal columns that the text occupies. */
export function width(text: string): number {
  if (PLAIN.test(text)) return text.length;
  const known = WIDTHS.get(text);
  if (known !== undefined) return known;
  const measured = stringWidth(text, { countAnsiEscapeCodes: true });
  if (WIDTHS.size === WIDTHS_MAX) WIDTHS.clear();
  if (text.length <= REMEMBERED_MAX_CHARACTERS) WIDTHS.set(text, measured);
  return measured;
}

/** The text, shortened to `columns` with an ellipsis if it is wider. What a reader takes for one character stays whole. */
export function cut(text: string, columns: number): string {
  if (text.length <= columns / 2) return text;
  if (PLAIN.test(text)) {
    if (text.length <= columns) return text;
    return columns > 0 ? `${text.slice(0, columns - 1)}…` : '';
  }
  if (text.length <= REMEMBERED_MAX_CHARACTERS && width(text) <= columns) return text;
  let used = 0;
  let end = 0;
  // A text may be much longer than what is shown of it.
  for (const { segment, index } of GRAPHEMES.segment(text)) {
    used += width(segment);
    if (used > columns) return columns > 0 ? `${text.slice(0, end)}…` : '';
    if (used < columns) end = index + segment.length;
  }
  return text;
}
