import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { TokenWait } from './team-lane.ts';

/** How a connection is paced. */
export interface Pacing {
  /** Waits until bytes may pass in a direction: `in` is to whom the connection leads. */
  wait: (bytes: number, direction: 'in' | 'out') => TokenWait;
  /** Bytes at a time, so that others' pieces pass between. */
  piece_bytes: number;
  /** Bytes that have been waited for before. */
  prepaid_bytes: number;
}

/**
 * A connection whose bytes, both ways, wait for tokens before they are passed on: it is not read, and its writer is not
 * answered, until then. The end of one direction is not the end of the other.
 */
export class PacedStream extends Duplex {
  readonly #connection: Socket;
  readonly #pacing: Pacing;
  readonly #waits = new Set<TokenWait>();
  #prepaid_bytes: number;
  #is_wanted = false;
  #is_reading = false;
  #is_ended = false;

  constructor(connection: Socket, pacing: Pacing) {
    super({ allowHalfOpen: true });
    this.#connection = connection;
    this.#pacing = pacing;
    this.#prepaid_bytes = pacing.prepaid_bytes;
    connection.on('readable', () => void this.#pass());
    connection.once('end', () => void this.#pass());
    connection.on('error', (error) => this.destroy(error));
    connection.once('close', () => {
      // What was read of it still passes; otherwise it has broken.
      if (!connection.readableEnded) this.destroy();
    });
  }

  override _read(): void {
    this.#is_wanted = true;
    void this.#pass();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    void this.#write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#connection.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    for (const wait of this.#waits) wait.cancel();
    this.#connection.destroy();
    done(error);
  }

  /** Passes on what is read, a piece at a time, while it is wanted. */
  async #pass(): Promise<void> {
    if (this.#is_reading) return;
    this.#is_reading = true;
    while (this.#is_wanted && !this.destroyed) {
      const piece = this.#piece();
      if (piece === null) break;
      if (!(await this.#may(piece.length, 'out'))) return;
      this.#is_wanted = this.push(piece);
    }
    this.#is_reading = false;
    if (!this.#connection.readableEnded || this.#is_ended || this.destroyed) return;
    this.#is_ended = true;
    this.push(null);
  }

  #piece(): Buffer | null {
    const { readableLength } = this.#connection;
    return this.#connection.read(Math.min(readableLength, this.#pacing.piece_bytes) || undefined);
  }

  async #write(chunk: Buffer, done: (error?: Error | null) => void): Promise<void> {
    const { piece_bytes } = this.#pacing;
    for (let at = 0; at < chunk.length; ) {
      // What was waited for before passes at once, to its last byte.
      const size = this.#prepaid_bytes > 0 ? Math.min(this.#prepaid_bytes, chunk.length) : piece_bytes;
      const piece = chunk.subarray(at, at + size);
      at += piece.length;
      if (!(await this.#may(piece.length, 'in'))) return;
      // What nobody takes any more is dropped; what came before still is to be read.
      if (this.#connection.destroyed) break;
      if (!this.#connection.write(piece) && !(await this.#drained())) break;
    }
    done();
  }

  #drained(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const settle = () => {
      this.#connection.off('drain', settle).off('close', settle);
      resolve(!this.#connection.destroyed);
    };
    this.#connection.on('drain', settle).on('close', settle);
    return promise;
  }

  /** Whether bytes may pass, once they may; false where the connection has gone meanwhile. */
  async #may(bytes: number, direction: 'in' | 'out'): Promise<boolean> {
    const prepaid = Math.min(bytes, this.#prepaid_bytes);
    this.#prepaid_bytes -= prepaid;
    if (prepaid === bytes) return !this.destroyed;
    const wait = this.#pacing.wait(bytes - prepaid, direction);
    this.#waits.add(wait);
    const is_granted = await wait.granted;
    this.#waits.delete(wait);
    return is_granted && !this.destroyed;
  }
}
