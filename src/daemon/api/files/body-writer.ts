import type { Writable } from 'node:stream';

/** Writes the body of an answer piece by piece, as fast as the client takes it. */
export class BodyWriter {
  readonly #raw: Writable;
  readonly #gone: AbortSignal;
  /** Of the piece that is being written. */
  #reject: (error: Error) => void = () => {};

  /** `gone` aborts when the client disconnects. */
  constructor(raw: Writable, gone: AbortSignal) {
    this.#raw = raw;
    this.#gone = gone;
    // Once for all pieces: a listener each would cost more than the write.
    gone.addEventListener('abort', () => this.#reject(disconnected()));
  }

  /**
   * To be called once the piece before is written. Resolves once the kernel has the bytes, and they may be overwritten.
   * Rejects if the client has disconnected.
   */
  write(data: Uint8Array): Promise<void> {
    const written = new Promise<void>((resolve, reject) => {
      this.#reject = reject;
      if (this.#gone.aborted) reject(disconnected());
      else this.#raw.write(data, (error) => (error ? reject(error) : resolve()));
    });
    // Awaited one piece later.
    written.catch(() => {});
    return written;
  }
}

function disconnected(): Error {
  return new Error('the client has disconnected');
}
