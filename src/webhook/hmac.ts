import { hash } from 'node:crypto';

const BLOCK_BYTES = 64;

/**
 * HMAC-SHA256 (RFC 2104) under a key that is used many times. The platform's own makes a native object at each call,
 * whose collection costs several times what the hashing does.
 */
export class HmacKey {
  readonly #inner = Buffer.alloc(BLOCK_BYTES, 0x36);
  readonly #outer = Buffer.alloc(BLOCK_BYTES, 0x5c);

  constructor(key: Uint8Array) {
    const short = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key;
    short.forEach((byte, i) => {
      this.#inner[i] = 0x36 ^ byte;
      this.#outer[i] = 0x5c ^ byte;
    });
  }

  /** 64 lower-case hex digits. */
  sign(message: Uint8Array): string {
    return hash('sha256', this.#outerMessage(message), 'hex');
  }

  /** 32 bytes. */
  digest(message: Uint8Array): Buffer {
    return hash('sha256', this.#outerMessage(message), 'buffer');
  }

  #outerMessage(message: Uint8Array): Buffer {
    const digest = hash('sha256', Buffer.concat([this.#inner, message]), 'buffer');
    return Buffer.concat([this.#outer, digest]);
  }
}
