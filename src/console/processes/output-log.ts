import { visibleLines } from '../base/format.ts';

/** One line of output. */
export interface OutputLine {
  /** Counts lines from the first that came, so that a line keeps its number when earlier ones are dropped. */
  number: number;
  stream: 'stdout' | 'stderr';
  text: string;
}

/** Lines that are kept in the page; the daemon keeps the output itself. */
export const LINES_MAX = 100_000;
/** A longer line is cut into several. */
const LINE_MAX_CHARACTERS = 2_000;

/** What terminals would carry out: it says nothing to a reader of lines. */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  /\u001b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g;

/** Collects output into lines: each stream by itself, as terminals would show it but for colours. */
export class OutputLog {
  #lines: OutputLine[] = [];
  #dropped = 0;
  readonly #open: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' };
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };

  /** The lines that are kept, oldest first; what has no end yet is the last of its stream. */
  lines(): OutputLine[] {
    const next = this.#dropped + this.#lines.length;
    const open = (['stdout', 'stderr'] as const)
      .filter((stream) => this.#open[stream] !== '')
      .map((stream, index) => ({ number: next + index, stream, text: readable(this.#open[stream]) }));
    return [...this.#lines, ...open];
  }

  /** How many lines have been dropped. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes the next bytes of a stream. */
  add(stream: 'stdout' | 'stderr', bytes: Uint8Array): void {
    const text = this.#open[stream] + this.#decoders[stream].decode(bytes, { stream: true });
    const parts = text.split('\n');
    let open = parts.pop() ?? '';
    for (const part of parts) this.#close(stream, part);
    while (open.length > LINE_MAX_CHARACTERS) {
      this.#close(stream, open.slice(0, LINE_MAX_CHARACTERS));
      open = open.slice(LINE_MAX_CHARACTERS);
    }
    this.#open[stream] = open;
    const over = this.#lines.length - LINES_MAX;
    // Not with every line: what is cut off is copied.
    if (over > LINES_MAX / 10) {
      this.#lines = this.#lines.slice(over);
      this.#dropped += over;
    }
  }

  #close(stream: 'stdout' | 'stderr', text: string): void {
    for (let at = 0; at === 0 || at < text.length; at += LINE_MAX_CHARACTERS) {
      const number = this.#dropped + this.#lines.length;
      this.#lines.push({ number, stream, text: readable(text.slice(at, at + LINE_MAX_CHARACTERS)) });
    }
  }
}

/** A line without what terminals carry out; after a carriage return, what was written over is gone. */
function readable(text: string): string {
  const line = text.replace(/\r$/, '').replace(ESCAPES, '');
  return visibleLines(line.slice(line.lastIndexOf('\r') + 1));
}
