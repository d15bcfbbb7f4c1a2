import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

/** HMAC-SHA256 under a key that is used many times: with the key's bytes, `createHmac` takes several times as long. */
export class HmacKey {
  readonly #key: KeyObject;

  /** `key`: of any length. */
  constructor(key: Uint8Array) {
    this.#key = createSecretKey(key);
  }

  /** The HMAC of the concatenated parts, as 64 lower-case hex digits. A text stands for its UTF-8 bytes. */
  sign(...parts: (string | Uint8Array)[]): string {
    const hmac = createHmac('sha256', this.#key);
    for (const part of parts) hmac.update(part);
    return hmac.digest('hex');
  }
}
