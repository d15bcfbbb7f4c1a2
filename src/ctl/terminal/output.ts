import { randomBytes } from 'node:crypto';
import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { printable } from './printable.ts';

const ESCAPE = '\x1b';
/** Stands for the escape character in this program's own styles: nobody else's text holds it. */
const OWN_ESCAPE = randomBytes(12).toString('hex');

export type Style = Parameters<typeof styleText>[0];

/** Thrown by a write to a stream whose reader has gone, as `head` does. */
export class OutputClosed extends Error {}

/** Where a command writes: a terminal, with its size and colours, or a pipe or file, with neither. */
export class Output {
  readonly #stream: Writable & { isTTY?: boolean; columns?: number; rows?: number };

  constructor(stream: Writable) {
    this.#stream = stream;
    // Each write tells its own error; without a listener the same one would also end the program.
    stream.on('error', () => {});
  }

  /** The width that lines have to fit in; null where there is no terminal. */
  get columns(): number | null {
    return this.#stream.isTTY ? (this.#stream.columns ?? 80) : null;
  }

  /** The height of the terminal; null where there is none. */
  get rows(): number | null {
    return this.#stream.isTTY ? (this.#stream.rows ?? 24) : null;
  }

  /** The text in this style where the stream is a terminal that shows it, else the text as it is. */
  style(style: Style, text: string): string {
    const [before = '', after = ''] = styleText(style, OWN_ESCAPE, { stream: this.#stream }).split(
      OWN_ESCAPE,
    );
    return before.replace(ESCAPE, OWN_ESCAPE) + text + after.replace(ESCAPE, OWN_ESCAPE);
  }

  /**
   * Writes the text as one line, with this program's own styles and nothing else that a terminal would act upon.
   * Resolves once it is written; rejects with `OutputClosed` where nobody reads any more.
   */
  line(text: string): Promise<void> {
    return this.write(`${this.#shown(text)}\n`);
  }

  /** Writes a line of JSON text with the very characters that it has, but to a terminal. */
  json(text: string): Promise<void> {
    return this.#stream.isTTY ? this.line(text) : this.write(`${text}\n`);
  }

  /** Writes the lines on an empty screen. */
  screen(lines: string[]): Promise<void> {
    return this.write(`${ESCAPE}[2J${ESCAPE}[H${lines.map((line) => `${this.#shown(line)}\n`).join('')}`);
  }

  #shown(text: string): string {
    return printable(text).replaceAll(OWN_ESCAPE, ESCAPE);
  }

  write(text: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(text, (error) => {
        if (!error) resolve();
        else reject((error as NodeJS.ErrnoException).code === 'EPIPE' ? new OutputClosed() : error);
      });
    });
  }
}
