import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createFileNow } from '../../base/durable-file.ts';
import { kernelRandom } from '../../base/entropy.ts';
import { StartError } from '../../contract/errors.ts';
import type { SettingStore } from './setting-store.ts';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 'v1.';
/** The setting that shows whether a key is the one that sealed the secrets in the database. */
const CHECK_KEY = 'seal_check';
const CHECK_TEXT = 'sandbox-manager';

/**
 * Encrypts texts for the database with AES-256-GCM. `context` names the place of a text: a text copied to another
 * place cannot be opened there. Source: contract section 7, `--secret-key-file`.
 */
export class Seal {
  readonly #key: KeyObject;

  constructor(key: Uint8Array) {
    this.#key = createSecretKey(key);
  }

  /** Encrypts a text; returns `v1.` and base64. */
  seal(text: string, context: string): string {
    const nonce = kernelRandom(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return VERSION + sealed.toString('base64');
  }

  /** Decrypts a sealed text. Throws if it was sealed with another key or for another place, or was changed. */
  open(sealed: string, context: string): string {
    const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64');
    const decipher = createDecipheriv(ALGORITHM, this.#key, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  }

  /**
   * The key with which a sandbox's daemon authenticates its records, 64 hex digits. It is derived, so that every
   * replica knows it without storing it. Source: contract section 7, "A deletion loses no event".
   */
  recordKey(sandbox_id: string): string {
    const derived = hkdfSync(
      'sha256',
      this.#key,
      '',
      `sandbox-manager record key v1/${sandbox_id}`,
      KEY_BYTES,
    );
    return Buffer.from(derived).toString('hex');
  }
}

/** Opens the seal of a key file, and creates the file with mode 0600 if it is missing. Throws StartError. */
export function openSeal(path: string): Seal {
  try {
    return new Seal(readKey(path) ?? makeKey(path));
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`--secret-key-file ${path}: ${(error as Error).message}`, 1, error);
  }
}

/** Checks that the secrets in the database can be opened with this key. Throws StartError if they were sealed with another. */
export async function checkSeal(seal: Seal, settings: SettingStore): Promise<void> {
  const kept = await settings.keep(CHECK_KEY, seal.seal(CHECK_TEXT, CHECK_KEY));
  try {
    seal.open(kept, CHECK_KEY);
  } catch (error) {
    throw new StartError(
      '--secret-key-file holds a different key from the one that sealed the secrets in the database',
      1,
      error,
    );
  }
}

function readKey(path: string): Buffer | null {
  try {
    const text = readFileSync(path, 'utf8').trim();
    const key = Buffer.from(text, 'base64');
    if (key.length === KEY_BYTES && /^[A-Za-z0-9+/]+={0,2}$/.test(text)) return key;
    throw new StartError(`--secret-key-file ${path} does not hold a base64 key of ${KEY_BYTES} bytes`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Replicas that start together agree on one key. */
function makeKey(path: string): Buffer {
  createFileNow(path, `${kernelRandom(KEY_BYTES).toString('base64')}\n`);
  const key = readKey(path);
  if (!key) throw new StartError(`--secret-key-file ${path} was removed while it was being created`);
  return key;
}
