import type { Socket } from 'node:net';
import { OUTPUT_CHUNK_BYTES } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';

/** One request to write. `offset` is the number of bytes that the caller knows to be accepted before it. */
export interface StdinWrite {
  data: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  offset?: number;
  /** Closes stdin after the data; at a terminal it types what the program reads as the end. */
  end?: boolean;
  /** Aborts when the caller has disconnected; what was written by then stays written. */
  signal?: AbortSignal;
}

const NO_END =
  'end: the terminal is in raw mode, in which no key is the end; write what the program itself takes for one.';

/** How a stdin differs from a plain pipe. */
export interface StdinOptions {
  /** What is typed for an end at a terminal, which cannot be half-closed; null where its settings have nothing for it. */
  endKeys?: () => Buffer | null;
  /** Called with every piece that is accepted, before it is written. */
  onData?: (data: Uint8Array) => void;
}

/**
 * The writing end of a process's stdin. One request writes at a time, and only while the pipe has room: at most
 * one chunk waits in memory. Source: contract section 4, POST `/processes/{id}/stdin`.
 */
export class Stdin {
  readonly #socket: Socket;
  readonly #options: StdinOptions;
  readonly #closed = new AbortController();
  #accepted = 0;
  #is_end_sent = false;
  #turn: Promise<void> = Promise.resolve();
  /** Settles when the pipe has taken the chunk that was written last. */
  #written: Promise<void> = Promise.resolve();

  /** `socket` is the writing end, and closed with this object. */
  constructor(socket: Socket, options: StdinOptions = {}) {
    this.#socket = socket;
    this.#options = options;
    socket.on('error', () => {}); // EPIPE: the process closed its end; 'close' follows
    socket.once('close', () => this.#closed.abort());
  }

  /** Bytes accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /**
   * Resolves when everything is written. Throws `conflict` (with `details.accepted`) if stdin is closed or closes
   * meanwhile, if `offset` leaves a gap, or if `end` cannot be told to a terminal.
   */
  async write(request: StdinWrite): Promise<void> {
    const turn = this.#turn;
    const done = Promise.withResolvers<void>();
    this.#turn = turn.then(() => done.promise);
    try {
      await this.#unlessClosed(turn, request.signal);
      await this.#writeInTurn(request);
    } finally {
      done.resolve();
    }
  }

  /** Closes stdin at once; waiting writes are `conflict`. */
  close(): void {
    this.#closed.abort();
    this.#socket.destroy();
  }

  async #writeInTurn({ data, offset = this.#accepted, end = false, signal }: StdinWrite): Promise<void> {
    if (offset > this.#accepted)
      throw this.#conflict('offset: must not be greater than the number of bytes accepted.');
    let skip = this.#accepted - offset;
    for await (const piece of data) {
      for (let at = 0; at < piece.length; at += OUTPUT_CHUNK_BYTES) {
        const chunk = piece.subarray(at, at + OUTPUT_CHUNK_BYTES);
        const rest = chunk.subarray(Math.min(skip, chunk.length));
        skip -= chunk.length - rest.length;
        if (rest.length > 0) await this.#take(rest, signal);
      }
    }
    if (end) await this.#end(signal);
  }

  async #take(chunk: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    await this.#unlessClosed(this.#written, signal);
    if (this.#is_end_sent) throw this.#conflict('stdin is closed.');
    this.#accepted += chunk.length;
    this.#options.onData?.(chunk);
    this.#put(Buffer.from(chunk));
    await this.#unlessClosed(this.#written, signal);
  }

  async #end(signal: AbortSignal | undefined): Promise<void> {
    if (this.#options.endKeys) {
      await this.#unlessClosed(this.#written, signal);
      const keys = this.#options.endKeys();
      if (keys === null) throw this.#conflict(NO_END, { field: 'end' });
      this.#put(keys);
    } else {
      this.#is_end_sent = true;
      this.#socket.end();
    }
    await this.#unlessClosed(this.#written, signal);
  }

  #put(chunk: Buffer): void {
    this.#written = new Promise((resolve) => {
      this.#socket.write(chunk, (error) => {
        if (error) this.#closed.abort();
        resolve();
      });
    });
  }

  /** Waits, but rejects when stdin closes or the caller disconnects. */
  #unlessClosed(wait: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onClosed = () => finish(() => reject(this.#conflict('stdin is closed.')));
      const onAbort = () => finish(() => reject(signal?.reason));
      const finish = (how: () => void) => {
        this.#closed.signal.removeEventListener('abort', onClosed);
        signal?.removeEventListener('abort', onAbort);
        how();
      };
      if (this.#closed.signal.aborted) return onClosed();
      if (signal?.aborted) return onAbort();
      this.#closed.signal.addEventListener('abort', onClosed);
      signal?.addEventListener('abort', onAbort);
      void wait.then(() => finish(resolve));
    });
  }

  #conflict(message: string, more = {}): ApiError {
    return new ApiError('conflict', message, { accepted: this.#accepted, ...more });
  }
}
