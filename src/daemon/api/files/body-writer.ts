import type { ServerResponse } from 'node:http';

/** Writes the body of an answer piece by piece, as fast as the client takes it. */
export class BodyWriter {
  readonly #raw: ServerResponse;
  readonly #gone: AbortSignal;

  /** `gone` aborts when the client disconnects. */
  constructor(raw: ServerResponse, gone: AbortSignal) {
    this.#raw = raw;
    this.#gone = gone;
  }

  /** Resolves once the kernel has the bytes, and they may be overwritten. Rejects if the client has disconnected. */
  write(data: Uint8Array): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onGone = () => reject(new Error('the client has disconnected'));
    if (this.#gone.aborted) onGone();
    else {
      this.#gone.addEventListener('abort', onGone);
      this.#raw.write(data, (error) => (error ? reject(error) : resolve()));
    }
    const done = promise.finally(() => this.#gone.removeEventListener('abort', onGone));
    // Awaited one piece later.
    done.catch(() => {});
    return done;
  }
}
