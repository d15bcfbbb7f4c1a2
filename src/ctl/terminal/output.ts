import { randomBytes } from 'node:crypto';
import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { EXIT, Failure, reason } from '../failure.ts';
import { printable } from './printable.ts';
import { ShownText } from './shown-text.ts';

const ESCAPE = '\x1b';
/** Replaces the escape character in this program's own styles; no other text contains it. */
const OWN_ESCAPE = randomBytes(12).toString('hex');

/** The name of a style, as `util.styleText` knows it. */
export type Style = Parameters<typeof styleText>[0];

/** Thrown by a write to a stream whose reader has closed it, as `head` does. */
export class OutputClosed extends Error {}

/** Where bytes go that are not this program's own words. */
export interface Content {
  /** Writes bytes, which may be cut anywhere; resolves and rejects like `Output.line`. */
  write(bytes: Uint8Array): Promise<void>;
  /** Writes what was held back because more might have come. */
  end(): Promise<void>;
}

/** A stream that a command writes to: a terminal with size and colours, or a pipe or file without. */
export class Output {
  readonly #stream: Writable & { isTTY?: boolean; columns?: number; rows?: number };

  constructor(stream: Writable) {
    this.#stream = stream;
    // Each write reports its own error; without a listener the same error would also end the program.
    stream.on('error', () => {});
  }

  /** The width of the terminal in columns; null if the stream is none. */
  get columns(): number | null {
    return this.#stream.isTTY ? (this.#stream.columns ?? 80) : null;
  }

  /** The height of the terminal in lines; null if the stream is none. */
  get rows(): number | null {
    return this.#stream.isTTY ? (this.#stream.rows ?? 24) : null;
  }

  /** The text in this style if the stream is a terminal that can show it, otherwise the plain text. */
  style(style: Style, text: string): string {
    const [before = '', after = ''] = styleText(style, OWN_ESCAPE, { stream: this.#stream }).split(
      OWN_ESCAPE,
    );
    return before.replace(ESCAPE, OWN_ESCAPE) + text + after.replace(ESCAPE, OWN_ESCAPE);
  }

  /**
   * Writes the text as one line, with this program's own styles and no other control characters. Resolves once it is
   * written; rejects with `OutputClosed` if the reader has closed the stream.
   */
  line(text: string): Promise<void> {
    return this.write(`${this.#shown(text)}\n`);
  }

  /** Writes each of the texts as one line, like `line`. */
  async lines(texts: readonly string[]): Promise<void> {
    for (const text of texts) await this.line(text);
  }

  /** Writes a line of JSON: unchanged, except on a terminal, where control characters are escaped. */
  json(text: string): Promise<void> {
    return this.#stream.isTTY ? this.line(text) : this.write(`${text}\n`);
  }

  /** Clears the screen and writes the lines. */
  screen(lines: string[]): Promise<void> {
    return this.write(`${ESCAPE}[2J${ESCAPE}[H${lines.map((line) => `${this.#shown(line)}\n`).join('')}`);
  }

  /** Takes content of the sandbox: unchanged where it `is_raw` or the stream is no terminal, otherwise as `ShownText` has it. */
  content(is_raw: boolean): Content {
    if (is_raw || !this.#stream.isTTY) return { write: (bytes) => this.write(bytes), end: async () => {} };
    const shown = new ShownText();
    return { write: (bytes) => this.write(shown.add(bytes)), end: () => this.write(shown.end()) };
  }

  #shown(text: string): string {
    return printable(text).replaceAll(OWN_ESCAPE, ESCAPE);
  }

  /** Writes text or bytes unchanged; resolves and rejects like `line`. */
  write(text: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(text, (error) => {
        if (!error) resolve();
        else if ((error as NodeJS.ErrnoException).code === 'EPIPE') reject(new OutputClosed());
        else reject(new Failure(EXIT.failed, `cannot write the output: ${reason(error)}`));
      });
    });
  }
}
