const NOTHING = Buffer.alloc(0);

/** Takes bytes from a stream of pieces, as many at a time as its user wants. */
export class ByteReader {
  readonly #pieces: AsyncIterator<Buffer>;
  /** What is left of the last piece. */
  #rest: Buffer = NOTHING;

  constructor(data: AsyncIterable<Buffer>) {
    this.#pieces = data[Symbol.asyncIterator]();
  }

  /** The next bytes, from one to `max` of them, as they come; null at the end. A whole piece is handed over as it is. */
  async some(max = Number.POSITIVE_INFINITY): Promise<Buffer | null> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#pieces.next();
      if (done) return null;
      this.#rest = value;
    }
    const part = this.#rest;
    if (part.length <= max) {
      this.#rest = NOTHING;
      return part;
    }
    this.#rest = part.subarray(max);
    return part.subarray(0, max);
  }

  /** So many bytes; fewer only at the end. */
  async take(size: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let left = size;
    while (left > 0) {
      const part = await this.some(left);
      if (part === null) break;
      if (part.length === size) return part;
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** All that is left, as it comes. */
  async *all(): AsyncGenerator<Buffer, void> {
    for (let part = await this.some(); part !== null; part = await this.some()) yield part;
  }

  /** Ends the stream of pieces. Idempotent. */
  async end(): Promise<void> {
    await this.#pieces.return?.();
  }
}
