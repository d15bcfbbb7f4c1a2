import { closeSync, constants, fchmodSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * The highest sequence that was acknowledged, kept beside the database: after damage to the database it tells how
 * many acknowledged records are missing. Written after each commit, never synced by itself: it may lag behind the
 * database after a power cut, which says nothing, and is never ahead of it while the database is whole.
 */
export class HighWater {
  readonly #path: string;
  #file: number | undefined;
  #sandbox_id = '';

  constructor(path: string) {
    this.#path = path;
  }

  /** Starts to keep the mark for a sandbox; returns the one found, 0 where there is none of this sandbox. */
  open(sandbox_id: string): number {
    const found = this.#read(sandbox_id);
    this.#sandbox_id = sandbox_id;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = openSync(this.#path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    fchmodSync(this.#file, 0o600);
    ftruncateSync(this.#file, 0);
    this.write(found);
    return found;
  }

  write(sequence: number): void {
    if (this.#file === undefined) return;
    try {
      writeSync(this.#file, `${String(sequence).padStart(16, '0')} ${this.#sandbox_id}\n`, 0);
    } catch {
      // A full disk: the mark stays where it is, which is safe (see above).
    }
  }

  #read(sandbox_id: string): number {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch {
      return 0;
    }
    const match = /^(\d{16}) (.*)\n$/s.exec(text);
    return match && match[2] === sandbox_id ? Number(match[1]) : 0;
  }
}
