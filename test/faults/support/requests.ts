/** Cuts a connection's bytes into requests: heads as text and bodies of the length that they declare. */
export class Requests {
  readonly #take: (head: string, body: Buffer) => void;
  #waiting: Buffer = Buffer.alloc(0);

  constructor(take: (head: string, body: Buffer) => void) {
    this.#take = take;
  }

  push(chunk: Buffer): void {
    this.#waiting = Buffer.concat([this.#waiting, chunk]);
    for (;;) {
      const end = this.#waiting.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = this.#waiting.subarray(0, end).toString('latin1');
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (this.#waiting.length < end + 4 + length) return;
      const body = Buffer.from(this.#waiting.subarray(end + 4, end + 4 + length));
      this.#waiting = this.#waiting.subarray(end + 4 + length);
      this.#take(head, body);
    }
  }
}
