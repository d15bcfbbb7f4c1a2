import type { FileHandle } from 'node:fs/promises';
import { type Readable, Writable } from 'node:stream';
import { ApiError } from '../../contract/errors.ts';
import { freeBuffer } from '../free-buffer.ts';

/** Bytes that wait for the disk: it writes them together, while the next ones arrive. */
const WAITING_BYTES = 128 * 1024;

/**
 * Writes a stream to the end of a file, as fast as the slower of both; returns the number of bytes. Leaves file and
 * stream open. Throws `invalid_request` where the stream breaks off, or the system's error.
 */
export function storeStream(data: Readable, handle: FileHandle, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const file = new FileSink(handle);
    const settle = (finish: () => void) => {
      data.off('error', onCut).off('close', onClose);
      signal.removeEventListener('abort', onCut);
      finish();
    };
    const fail = (error: unknown) =>
      settle(() => {
        data.unpipe(file);
        reject(error);
      });
    const onCut = () => fail(new ApiError('invalid_request', 'The body was cut off.'));
    const onClose = () => {
      if (!data.readableEnded) onCut();
    };
    file.once('error', fail).once('finish', () => settle(() => resolve(file.size_bytes)));
    data.once('error', onCut).once('close', onClose);
    signal.addEventListener('abort', onCut);
    if (signal.aborted || data.destroyed) onCut();
    else data.pipe(file);
  });
}

/** Node's own stream for a file handle keeps it from being closed. */
class FileSink extends Writable {
  size_bytes = 0;
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    super({ highWaterMark: WAITING_BYTES, decodeStrings: true });
    this.#handle = handle;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#write([chunk]).then(() => done(), done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error) => void): void {
    this.#write(chunks.map(({ chunk }) => chunk)).then(() => done(), done);
  }

  /** The kernel may take a part only. */
  async #write(chunks: Buffer[]): Promise<void> {
    let rest = chunks;
    while (rest.length > 0) {
      const { bytesWritten: taken } = await this.#handle.writev(rest);
      this.size_bytes += taken;
      rest = after(rest, taken);
    }
    for (const chunk of chunks) freeBuffer(chunk);
  }
}

function after(chunks: readonly Buffer[], taken: number): Buffer[] {
  let skipped = taken;
  return chunks.flatMap((chunk) => {
    const rest = chunk.subarray(Math.min(skipped, chunk.length));
    skipped -= chunk.length - rest.length;
    return rest.length > 0 ? [rest] : [];
  });
}
