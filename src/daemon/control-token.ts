import { timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { overwriteFileNow } from '../base/durable-file.ts';
import { kernelRandom } from '../base/entropy.ts';
import { StartError } from '../contract/errors.ts';

/** Files removed within this time were removed together. */
const TOGETHER_MS = 1_000;

/**
 * The control token and its file. Source: contract section 4, `--control-token-file`.
 *
 * | state | entered by | `matches` |
 * |---|---|---|
 * | `unread` | construction | nothing |
 * | `held` | `read`, `renew` | the token |
 * | `forgotten` | `forget`; final | nothing |
 */
export class ControlToken {
  readonly #path: string;
  /** A file elsewhere belongs to its owner: it is never restored. */
  readonly #is_in_state_dir: boolean;
  #state: 'unread' | 'held' | 'forgotten' = 'unread';
  #value = Buffer.alloc(0);
  /** When the file was first found missing; null while the last check found it. */
  #missing_since_ms: number | null = null;
  readonly #clock: Clock;

  constructor(path: string, state_dir: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.#is_in_state_dir = dirname(path) === state_dir;
  }

  /** Whether `read` has succeeded. */
  get is_read(): boolean {
    return this.#state !== 'unread';
  }

  /** Reads the token, or creates one with mode 0600 if the file is missing or empty. Throws StartError. */
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

  /** Replaces the token with a new one, for a sandbox with a new identity. */
  renew(): void {
    if (this.#state !== 'forgotten') this.#write(newToken());
  }

  /** Removes the token and its file: from now on only the control socket grants control. */
  forget(): void {
    this.#state = 'forgotten';
    this.#value = Buffer.alloc(0);
    rmSync(this.#path, { force: true });
  }

  /** Whether `given` is the token, compared in constant time; an empty text never is. */
  matches(given: string): boolean {
    const bytes = Buffer.from(given);
    return bytes.length > 0 && bytes.length === this.#value.length && timingSafeEqual(bytes, this.#value);
  }

  /** Notes whether the file exists, so that `restore` does not bring back one that was removed on purpose. */
  checkFile(): void {
    if (!this.#is_in_state_dir || this.#state !== 'held') return;
    this.#missing_since_ms = existsSync(this.#path)
      ? null
      : (this.#missing_since_ms ?? this.#clock.monotonicMs());
  }

  /** Writes the token to its file again if that was removed together with the outbox. */
  restore(): void {
    if (!this.#is_in_state_dir || this.#state !== 'held' || existsSync(this.#path)) return;
    const missing_ms = this.#clock.monotonicMs() - (this.#missing_since_ms ?? this.#clock.monotonicMs());
    if (missing_ms < TOGETHER_MS) this.#write(this.#value.toString());
  }

  #write(token: string): void {
    overwriteFileNow(this.#path, `${token}\n`);
    this.#hold(token);
  }

  #hold(token: string): void {
    this.#value = Buffer.from(token);
    this.#state = 'held';
    this.checkFile();
  }
}

function newToken(): string {
  return kernelRandom(32).toString('hex');
}

function readToken(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\n$/, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
