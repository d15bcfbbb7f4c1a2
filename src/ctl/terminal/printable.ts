/** Control characters, line and paragraph separators, and characters that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const WIDE =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\uff01-\uff60]/u;
const ZERO = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** The text on one line, with every character escaped that a terminal would act upon instead of showing. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    if (character === '\n' || character === '\r' || character === '\t') return ' ';
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The number of terminal columns that the text occupies. */
export function width(text: string): number {
  let columns = 0;
  for (const character of text) columns += characterWidth(character);
  return columns;
}

/** The text, shortened to `columns` with an ellipsis if it is wider. */
export function cut(text: string, columns: number): string {
  if (text.length <= columns / 2 || width(text) <= columns) return text;
  let kept = '';
  let left = columns - 1;
  for (const character of text) {
    left -= characterWidth(character);
    if (left < 0) break;
    kept += character;
  }
  return columns > 0 ? `${kept}…` : '';
}

function characterWidth(character: string): number {
  if (character <= '~') return 1;
  return WIDE.test(character) ? 2 : ZERO.test(character) ? 0 : 1;
}
