import type { OutputGap, OutputPiece } from '../../client/streams/bytes.ts';
import type { OutputStream } from '../../contract/words.ts';
import type { Terminal } from '../context.ts';
import type { Content } from './output.ts';

const NOTHING = new Uint8Array();

/**
 * Writes a process's output to this program's own streams, each byte once: pieces that come again are skipped, and gaps are
 * reported on stderr.
 */
export class OutputSink {
  readonly #terminal: Terminal;
  readonly #content: Record<OutputStream, Content>;
  /** The next offset of each stream; null before its first piece. */
  readonly #next: Record<OutputStream, number | null> = { stdout: null, stderr: null };

  /** What a terminal would act upon reaches it only if the output `is_raw`. */
  constructor(terminal: Terminal, is_raw: boolean) {
    this.#terminal = terminal;
    this.#content = { stdout: terminal.out.content(is_raw), stderr: terminal.err.content(is_raw) };
  }

  /** Writes a piece, or reports a gap; resolves when that is done. */
  take(event: OutputPiece | OutputGap): Promise<void> {
    return this.#write(event.stream, event.offset, event.type === 'output' ? event.bytes : NOTHING);
  }

  async #write(stream: OutputStream, offset: number, bytes: Uint8Array): Promise<void> {
    const next = this.#next[stream] ?? offset;
    const end = offset + bytes.length;
    if (end <= next) return;
    if (offset > next) await this.#reportGap(stream, offset - next);
    this.#next[stream] = end;
    if (bytes.length > 0)
      await this.#print(stream, Math.max(offset, next), bytes.subarray(Math.max(0, next - offset)));
  }

  /** Writes what was held back because more might have come. */
  async end(): Promise<void> {
    for (const content of Object.values(this.#content)) await content.end();
  }

  #print(stream: OutputStream, offset: number, bytes: Uint8Array): Promise<void> {
    const { out, json } = this.#terminal;
    if (!json) return this.#content[stream].write(bytes);
    const given = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const text = given.toString('utf8');
    const is_text = Buffer.from(text, 'utf8').equals(given);
    const data = is_text ? { data: text } : { data: given.toString('base64'), encoding: 'base64' };
    return out.line(JSON.stringify({ type: 'output', stream, offset, ...data }));
  }

  #reportGap(stream: OutputStream, bytes: number): Promise<void> {
    return this.#terminal.err.line(`sandboxctl: ${bytes} bytes of ${stream} are no longer kept`);
  }
}
