/** The parts of a frame's head. Source: RFC 6455, section 5.2. */
const CLOSE = 0x88;
const LENGTH = 0x7f;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASKED = 0x80;
const MASK_BYTES = 4;

/** Follows where frames of a WebSocket begin and end in a stream of bytes; what is in them does not matter. */
export class FrameBoundary {
  /** Bytes of the head that has begun. */
  readonly #head = Buffer.alloc(2 + 8 + MASK_BYTES);
  #head_bytes = 0;
  /** Bytes of the payload to come. */
  #left = 0;

  /** Whether all frames that have begun are complete. */
  get is_between(): boolean {
    return this.#head_bytes === 0 && this.#left === 0;
  }

  /** Takes the bytes that follow. */
  take(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#left > 0) {
        const step = Math.min(this.#left, bytes.length - at);
        this.#left -= step;
        at += step;
        continue;
      }
      this.#head[this.#head_bytes] = bytes[at] as number;
      this.#head_bytes += 1;
      at += 1;
      if (this.#head_bytes < 2 || this.#head_bytes < headBytes(this.#head)) continue;
      this.#left = payloadBytes(this.#head);
      this.#head_bytes = 0;
    }
  }
}

function headBytes(head: Buffer): number {
  const length = (head[1] as number) & LENGTH;
  const more = length === LENGTH_64 ? 8 : length === LENGTH_16 ? 2 : 0;
  return 2 + more + ((head[1] as number) & MASKED ? MASK_BYTES : 0);
}

function payloadBytes(head: Buffer): number {
  const length = (head[1] as number) & LENGTH;
  if (length === LENGTH_64) return Number(head.readBigUInt64BE(2));
  return length === LENGTH_16 ? head.readUInt16BE(2) : length;
}

/** A server's frame that closes a WebSocket; `reason` has at most 123 bytes. */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  const frame = Buffer.alloc(4 + text.length);
  frame[0] = CLOSE;
  frame[1] = 2 + text.length;
  frame.writeUInt16BE(code, 2);
  text.copy(frame, 4);
  return frame;
}
