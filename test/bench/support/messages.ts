const HEAD_END = '\r\n\r\n';
const NOTHING = Buffer.alloc(0);

/**
 * Cuts the bytes of a connection into HTTP/1.1 messages by their Content-Length; a message without one has no body.
 * Much cheaper than a full parser, and enough for the two ends of a benchmark.
 */
export class Messages {
  readonly #take: (head: string, body: Buffer) => void;
  #rest: Buffer = NOTHING;

  constructor(take: (head: string, body: Buffer) => void) {
    this.#take = take;
  }

  push(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const head_end = bytes.indexOf(HEAD_END);
      if (head_end < 0) break;
      const head = bytes.toString('latin1', 0, head_end);
      const start = head_end + HEAD_END.length;
      const end = start + Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (bytes.length < end) break;
      const body = bytes.subarray(start, end);
      bytes = end === bytes.length ? NOTHING : bytes.subarray(end);
      this.#take(head, body);
      if (bytes.length === 0) break;
    }
    this.#rest = bytes;
  }
}
