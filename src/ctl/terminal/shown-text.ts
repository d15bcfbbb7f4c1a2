import { StringDecoder } from 'node:string_decoder';
import { printable } from './printable.ts';

const ESCAPE = '\u001b';
/** What follows ESC in what sets colours and styles (SGR). Longer ones than any program writes are no such sequence. */
const PARAMETERS = '\\[[\\d;:]{0,64}';
const STYLE = new RegExp(`${ESCAPE}${PARAMETERS}m`, 'g');
/** What may be the beginning of a style or of a line's end, at the end of a piece. */
const UNFINISHED = new RegExp(`(?:${ESCAPE}(?:${PARAMETERS})?|\\r)$`);
/** What is shown as it is: styles, ends of lines, and tabs. */
const KEPT = new RegExp(`(${STYLE.source}|\\r?\\n|\\t)`);
const NO_STYLE = `${ESCAPE}[0m`;

/**
 * Bytes as a terminal may get them: text in its lines with its colours, every other character escaped that a terminal
 * would act upon. Bytes that are no UTF-8 are shown as U+FFFD. A style that is still on at the end is ended.
 */
export class ShownText {
  readonly #decoder = new StringDecoder('utf8');
  /** What may be the beginning of more. */
  #held = '';
  #is_styled = false;

  /** The text to show for these bytes, which may be cut anywhere. */
  add(bytes: Uint8Array): string {
    const text = this.#held + this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    this.#held = UNFINISHED.exec(text)?.[0] ?? '';
    return this.#shown(text.slice(0, text.length - this.#held.length));
  }

  /** The text to show once no more bytes come. */
  end(): string {
    const rest = this.#shown(this.#held + this.#decoder.end());
    this.#held = '';
    const after = this.#is_styled ? NO_STYLE : '';
    this.#is_styled = false;
    return rest + after;
  }

  #shown(text: string): string {
    const styles = text.match(STYLE);
    if (styles) this.#is_styled = !/\[0*m$/.test(styles.at(-1) as string);
    // Every second part is one that is kept.
    return text
      .split(KEPT)
      .map((part, index) => (index % 2 === 1 ? part : escaped(part)))
      .join('');
  }
}

function escaped(text: string): string {
  return printable(text.replaceAll('\r', '\\u000d'));
}
