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

  /** So many bytes; fewer only at the end. Holds no more than these, however small the pieces are. */
  async take(size: number): Promise<Buffer> {
    const first = await this.some(size);
    if (first === null || first.length === size) return first ?? NOTHING;
    const taken = Buffer.allocUnsafeSlow(size);
    let filled = first.copy(taken);
    for (let part: Buffer | null; filled < size; filled += part.copy(taken, filled)) {
      part = await this.some(size - filled);
      if (part === null) break;
    }
    return taken.subarray(0, filled);
  }

  /** All that is left, as it comes. */
  async *all(): AsyncGenerator<Buffer, void> {
    for (let part = await this.some(); part !== null; part = await this.some()) yield part;
  }

  /** Asks the stream of pieces to end, which it does at once, or with a piece that is still awaited. Idempotent. */
  end(): void {
    this.#pieces.return?.().then(null, () => {});
  }
}
