import {
  closeSync,
  constants,
  fchmodSync,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import type { Clock, Timer } from '../../../base/clock.ts';

/** How long after a change the mark is synced, beside the commits: they do not wait for it. */
const SYNC_DELAY_MS = 5_000;

/** Two numbers and an id. */
const MARK_MAX_BYTES = 4 * 1024;

/** The state after a commit. */
export interface Mark {
  sandbox_id: string;
  /** The highest sequence that was assigned. */
  sequence: number;
  /** How many records are pending. */
  pending: number;
}

/**
 * The last sequence and number of pending records, kept beside the database: after damage it shows how many
 * acknowledged records are missing. It is written after each commit and synced some seconds later. After a power cut it
 * may lag behind the database, which is harmless; it is never ahead of an intact database.
 */
export class HighWater {
  readonly #path: string;
  readonly #clock: Clock;
  #file: number | undefined;
  #sandbox_id = '';
  #sync: Timer | null = null;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** The stored mark; null where there is none, or none that a daemon wrote. Throws where the file cannot be read. */
  read(): Mark | null {
    const text = textOf(this.#path);
    const match = /^(\d{16}) (\d{16}) (.*)\n$/s.exec(text);
    if (!match) return null;
    return { sequence: Number(match[1]), pending: Number(match[2]), sandbox_id: match[3] as string };
  }

  /** Opens the file and writes the current mark. Throws where the file cannot be opened. */
  open(mark: Mark): void {
    this.close();
    this.#file = openSync(this.#path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    fchmodSync(this.#file, 0o600);
    this.#sandbox_id = mark.sandbox_id;
    try {
      ftruncateSync(this.#file, this.#text(mark.sequence, mark.pending).length);
    } catch {
      // A full disk: see below.
    }
    this.write(mark.sequence, mark.pending);
  }

  /** Writes the mark after a commit; syncs it some seconds later. Never throws. */
  write(sequence: number, pending: number): void {
    if (this.#file === undefined) return;
    try {
      writeSync(this.#file, this.#text(sequence, pending), 0);
    } catch {
      // A full disk: the mark stays where it is, which is safe (see above).
    }
    this.#sync ??= this.#clock.after(SYNC_DELAY_MS, () => this.#syncNow());
  }

  /** Writes nothing more by itself, and leaves the file open. */
  leave(): void {
    this.#sync?.cancel();
    this.#sync = null;
  }

  /** Closes the file. Idempotent. */
  close(): void {
    this.leave();
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #text(sequence: number, pending: number): string {
    const digits = (count: number) => String(count).padStart(16, '0');
    return `${digits(sequence)} ${digits(pending)} ${this.#sandbox_id}\n`;
  }

  #syncNow(): void {
    this.#sync = null;
    // What is not on disk now is so with the next change.
    if (this.#file !== undefined) fdatasync(this.#file, () => {});
  }
}

/** A file that is read whole holds no more than a mark; a pipe or a link in its place is none. */
function textOf(path: string): string {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let file: number;
  try {
    file = openSync(path, flags);
  } catch (error) {
    if (/^(ENOENT|ELOOP|ENXIO)$/.test((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
  try {
    if (!fstatSync(file).isFile()) return '';
    const bytes = Buffer.alloc(MARK_MAX_BYTES);
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(file);
  }
}
