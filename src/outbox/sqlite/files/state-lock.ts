import { statSync } from 'node:fs';
import { join } from 'node:path';
import { FileLock, FileLockedError } from '../../../base/file-lock.ts';
import { StartError } from '../../../contract/errors.ts';
import { prepareStateDir } from './state-files.ts';

/** What a name leads to. */
export interface FileIdentity {
  dev: number;
  ino: number;
}

/** The file that a name leads to now. */
export function identityOf(path: string): FileIdentity | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** Another daemon has the state directory. */
export class DirectoryTakenError extends StartError {}

/** Whether two identities are of the same file. */
export function isSameFile(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.ino === other?.ino && one?.dev === other?.dev;
}

/**
 * The state directory, held for this process until it ends, however it ends: the lock is the kernel's. It stays with
 * the thread that took it while the database changes hands. Source: contract section 3, One owner.
 */
export class StateLock {
  readonly #state_dir: string;
  readonly #path: string;
  #lock: FileLock | null = null;
  #identity: FileIdentity | undefined;

  /** `held`: the lock's file where another thread of this process holds it; without it the lock is taken here. */
  constructor(state_dir: string, held: FileIdentity | null = null) {
    this.#state_dir = state_dir;
    this.#path = join(state_dir, 'lock');
    if (held) this.#identity = held;
    else this.take();
  }

  /** The lock's file, for another thread's `StateLock`. */
  get identity(): FileIdentity | null {
    return this.#identity ?? null;
  }

  /** Whether the name still leads to the file that is locked. */
  isInPlace(): boolean {
    return isSameFile(identityOf(this.#path), this.#identity);
  }

  /** Takes the lock under its name, even if that leads to another file by now. Throws StartError where it is taken. */
  take(): void {
    prepareStateDir(this.#state_dir);
    const taken = this.#open();
    this.#lock?.release();
    this.#lock = taken;
    const { dev, ino } = statSync(this.#path);
    this.#identity = { dev, ino };
  }

  /** Releases the lock. Idempotent. */
  release(): void {
    this.#lock?.release();
    this.#lock = null;
  }

  #open(): FileLock {
    try {
      return new FileLock(this.#path);
    } catch (error) {
      if (!(error instanceof FileLockedError)) throw error;
      throw new DirectoryTakenError(
        `state directory ${this.#state_dir} is in use by another sandboxd${error.holder}`,
      );
    }
  }
}
