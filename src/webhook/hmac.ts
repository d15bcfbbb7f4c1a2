import { hash } from 'node:crypto';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** Messages up to this size are hashed in the key's own buffer. */
const ROOM_BYTES = 16 * 1024;
/** The most bytes that one UTF-16 unit takes in UTF-8. */
const UNIT_BYTES = 3;

/**
 * HMAC-SHA256 (RFC 2104) under a key that is used many times. `createHmac` makes a native object at each call, whose
 * collection costs several times as much as the hashing; so does each digest that is returned as bytes.
 */
export class HmacKey {
  readonly #inner = Buffer.alloc(BLOCK_BYTES + ROOM_BYTES, 0x36);
  readonly #outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x5c);

  /** `key`: of any length. */
  constructor(key: Uint8Array) {
    const short = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key;
    short.forEach((byte, i) => {
      this.#inner[i] = 0x36 ^ byte;
      this.#outer[i] = 0x5c ^ byte;
    });
  }

  /** The HMAC of the concatenated parts, as 64 lower-case hex digits. A text stands for its UTF-8 bytes. */
  sign(...parts: (string | Uint8Array)[]): string {
    this.#outer.write(hash('sha256', this.#behindKey(parts)), BLOCK_BYTES, 'hex');
    return hash('sha256', this.#outer);
  }

  #behindKey(parts: (string | Uint8Array)[]): Uint8Array {
    let units = 0;
    for (const { length } of parts) units += length;
    if (units * UNIT_BYTES > ROOM_BYTES) {
      return Buffer.concat([this.#inner.subarray(0, BLOCK_BYTES), ...parts.map((part) => Buffer.from(part))]);
    }
    let end = BLOCK_BYTES;
    for (const part of parts) {
      if (typeof part === 'string') end += this.#inner.write(part, end);
      else {
        this.#inner.set(part, end);
        end += part.length;
      }
    }
    return this.#inner.subarray(0, end);
  }
}
