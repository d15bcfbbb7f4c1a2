import { timingSafeEqual } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { kernelRandom } from '../base/entropy.ts';
import { StartError } from '../contract/errors.ts';

/** Files that go within this time went together. */
const TOGETHER_MS = 1_000;

/**
 * The control token and its file. Until `read` has returned there is none, and after `forget` there is none again:
 * then nothing matches. Source: contract section 4, `--control-token-file`.
 */
export class ControlToken {
  readonly #path: string;
  /** A file elsewhere is its owner's business: it is never written again. */
  readonly #is_in_state_dir: boolean;
  #state: 'unread' | 'held' | 'forgotten' = 'unread';
  #value = Buffer.alloc(0);
  /** When the file was first found missing, or null where it is in place as far as anybody looked. */
  #missing_since_ms: number | null = null;
  readonly #clock: Clock;

  constructor(path: string, state_dir: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.#is_in_state_dir = dirname(path) === state_dir;
  }

  get is_read(): boolean {
    return this.#state !== 'unread';
  }

  /** Reads the token; makes one, with mode 0600, where the file is missing or empty. Throws StartError. */
  read(): void {
    if (this.#state !== 'unread') return;
    try {
      const token = readToken(this.#path);
      if (token === '') this.#write(newToken());
      else this.#hold(token);
    } catch (error) {
      throw new StartError(`control token ${this.#path}: ${(error as Error).message}`);
    }
  }

  /** Makes a new token in place of the old one, as for a new sandbox. */
  renew(): void {
    if (this.#state !== 'forgotten') this.#write(newToken());
  }

  /** Nobody has control by a token any more: it is served on the control socket alone. */
  forget(): void {
    this.#state = 'forgotten';
    this.#value = Buffer.alloc(0);
    rmSync(this.#path, { force: true });
  }

  /** Whether this is the token; an empty one never is. */
  matches(given: string): boolean {
    const bytes = Buffer.from(given);
    return bytes.length > 0 && bytes.length === this.#value.length && timingSafeEqual(bytes, this.#value);
  }

  /** Notes whether the file is in place, so that one that was taken away on purpose stays away. */
  look(): void {
    if (!this.#is_in_state_dir || this.#state !== 'held') return;
    this.#missing_since_ms = existsSync(this.#path)
      ? null
      : (this.#missing_since_ms ?? this.#clock.monotonicMs());
  }

  /** Writes the token that is in use to its file where that was removed together with the outbox. */
  restore(): void {
    if (!this.#is_in_state_dir || this.#state !== 'held' || existsSync(this.#path)) return;
    const missing_ms = this.#clock.monotonicMs() - (this.#missing_since_ms ?? this.#clock.monotonicMs());
    if (missing_ms < TOGETHER_MS) this.#write(this.#value.toString());
  }

  #write(token: string): void {
    writeToken(this.#path, token);
    this.#hold(token);
  }

  #hold(token: string): void {
    this.#value = Buffer.from(token);
    this.#state = 'held';
    this.look();
  }
}

function newToken(): string {
  return kernelRandom(32).toString('hex');
}

function writeToken(path: string, token: string): void {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  const file = openSync(path, flags, 0o600);
  try {
    fchmodSync(file, 0o600);
    writeSync(file, `${token}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function readToken(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\n$/, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
