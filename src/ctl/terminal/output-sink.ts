import type { OutputPosition, OutputStream } from '../../contract/processes.ts';
import type { Context } from '../context.ts';
import type { Content } from './output.ts';

/** A piece of a process's output as the API sends it; `offset` counts bytes from the start of its stream. */
export interface OutputPiece {
  stream: OutputStream;
  offset: number;
  data: string;
  encoding?: 'base64';
}

/**
 * Writes a process's output to this program's own streams, each byte once: pieces that are repeated after a lost
 * connection are skipped, and gaps are reported on stderr.
 */
export class OutputSink {
  readonly #context: Context;
  readonly #content: Record<OutputStream, Content>;
  /** The next offset of each stream; null before its first piece. */
  readonly #next: Record<OutputStream, number | null> = { stdout: null, stderr: null };

  /** What a terminal would act upon reaches it only if the output `is_raw`. */
  constructor(context: Context, is_raw: boolean) {
    this.#context = context;
    this.#content = { stdout: context.out.content(is_raw), stderr: context.err.content(is_raw) };
  }

  /** The offsets after the last byte written. */
  get position(): OutputPosition {
    return { stdout: this.#next.stdout ?? 0, stderr: this.#next.stderr ?? 0 };
  }

  /** Writes a piece; resolves when it is written. */
  take({ stream, offset, data, encoding }: OutputPiece): Promise<void> {
    return this.write(stream, offset, Buffer.from(data, encoding ?? 'utf8'));
  }

  /** Writes bytes of a stream, which may be none: a gap before them is reported all the same. */
  async write(stream: OutputStream, offset: number, bytes: Buffer): Promise<void> {
    const next = this.#next[stream] ?? offset;
    const end = offset + bytes.length;
    if (end <= next) return;
    if (offset > next) await this.#reportGap(stream, offset - next);
    this.#next[stream] = end;
    await this.#print(stream, Math.max(offset, next), bytes.subarray(Math.max(0, next - offset)));
  }

  /** Writes what was held back because more might have come. */
  async end(): Promise<void> {
    for (const content of Object.values(this.#content)) await content.end();
  }

  #print(stream: OutputStream, offset: number, bytes: Buffer): Promise<void> {
    const { out, json } = this.#context;
    if (!json) return this.#content[stream].write(bytes);
    const text = bytes.toString('utf8');
    const is_text = Buffer.from(text, 'utf8').equals(bytes);
    const data = is_text ? { data: text } : { data: bytes.toString('base64'), encoding: 'base64' };
    return out.line(JSON.stringify({ type: 'output', stream, offset, ...data }));
  }

  #reportGap(stream: OutputStream, bytes: number): Promise<void> {
    return this.#context.err.line(`sandboxctl: ${bytes} bytes of ${stream} are no longer kept`);
  }
}
