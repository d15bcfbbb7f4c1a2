import type { IncomingMessage } from 'node:http';
import { BODIES_MAX_BYTES, BODY_MAX_BYTES, SMALL_BODY_BYTES } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { giveBackSoon } from '../linux/memory.ts';
import { turns } from '../loop-turns.ts';

/** When a client should try again whose body had to go. */
const RETRY_AFTER_S = 1;
const NONE = Buffer.alloc(0);

/** Called once: with the whole body, or with why there is none. */
type Done = (error: Error | null, body: Buffer) => void;

/**
 * The bodies that are being read into memory. Each has a limit, and so has their sum: beyond `BODIES_MAX_BYTES` the one that
 * has been under way longest goes first, refused with `unavailable`. Small ones always find room: there are no more of them
 * than connections.
 */
export class Bodies {
  readonly #max_bytes: number;
  /** Those that are not small, longest under way first, with what each holds. */
  readonly #large = new Map<Body, number>();
  #bytes = 0;

  constructor(max_bytes = BODIES_MAX_BYTES) {
    this.#max_bytes = max_bytes;
  }

  /** What the bodies that are not small hold, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Reads a body. Fails with `payload_too_large`, `unavailable`, or the error of a request that was cut off. */
  read(request: IncomingMessage, done: Done): void {
    if (Number(request.headers['content-length']) > BODY_MAX_BYTES) {
      done(new ApiError('payload_too_large'), NONE);
      return;
    }
    const body = new Body(this, done, Number(request.headers['content-length'] ?? BODY_MAX_BYTES));
    request.on('data', (chunk: Buffer) => body.take(chunk));
    request.on('end', () => body.end(null));
    request.on('error', (error) => body.end(error));
  }

  /** Notes what a body holds now, and makes room for it. */
  note(body: Body, bytes: number): void {
    this.#bytes += bytes - (this.#large.get(body) ?? 0);
    this.#large.set(body, bytes);
    for (const [longest] of this.#large) {
      if (this.#bytes <= this.#max_bytes) return;
      longest.end(new ApiError('unavailable', TOO_MANY, { retry_after_s: RETRY_AFTER_S }));
    }
  }

  /** Forgets a body that has ended. */
  drop(body: Body): void {
    const held = this.#large.get(body);
    if (held === undefined) return;
    this.#large.delete(body);
    this.#bytes -= held;
  }
}

const TOO_MANY = 'Too many request bodies are under way: this one has taken longest.';

/** One body. */
class Body {
  readonly #bodies: Bodies;
  #done: Done | null;
  /** The bytes so far, and room for more. */
  #held: Buffer = NONE;
  #length = 0;
  /** The most that it may come to, in bytes. */
  readonly #max_length: number;

  constructor(bodies: Bodies, done: Done, max_length: number) {
    this.#bodies = bodies;
    this.#done = done;
    this.#max_length = max_length;
  }

  take(chunk: Buffer): void {
    if (!this.#done) return;
    const length = this.#length + chunk.length;
    if (length > BODY_MAX_BYTES) {
      this.end(new ApiError('payload_too_large'));
      return;
    }
    if (this.#length === 0) this.#held = chunk;
    else {
      // Pieces may be of a byte each, and as many objects would take a hundred times as much memory.
      if (length > this.#held.length) this.#grow(length);
      chunk.copy(this.#held, this.#length);
    }
    this.#length = length;
    if (this.#held.length <= SMALL_BODY_BYTES) return;
    giveBackSoon();
    this.#bodies.note(this, this.#held.length);
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.min(2 * length, this.#max_length));
    this.#held.copy(grown, 0, 0, this.#length);
    this.#held = grown;
  }

  end(error: Error | null): void {
    const done = this.#done;
    if (!done) return;
    this.#done = null;
    const body = this.#held.length === this.#length ? this.#held : this.#held.subarray(0, this.#length);
    this.#held = NONE;
    const give = () => {
      this.#bodies.drop(this);
      done(error, error ? NONE : body);
    };
    if (error === null && body.length > SMALL_BODY_BYTES) turns.take(give);
    else give();
  }
}

/** The bodies that this program is reading. */
export const bodies = new Bodies();
