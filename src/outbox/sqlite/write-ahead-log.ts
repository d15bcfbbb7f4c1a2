import type { Clock } from '../../base/clock.ts';
import type { OutboxFiles } from './files/outbox-files.ts';
import { troubleOf } from './store-errors.ts';

/** The log is written back when about this much was added and nothing waits: that takes a short moment. */
const WRITE_BACK_BYTES = 1024 * 1024;
/** The log is written back at this size, whatever waits. */
const WRITE_BACK_AT_LATEST_BYTES = 4 * 1024 * 1024;
/** Early writing back may take 1 / 25 of the time: with slow syncs or many commits, few and long ones cost less. */
const WRITE_BACK_SHARE = 25;
/** The longest pause until the next early one: a slow one may have been delayed by something else. */
const WRITE_BACK_PAUSE_MAX_MS = 1_000;
/** What each commit adds to the log, and each row beside its texts: several share a page. */
const COMMIT_LOG_BYTES = 24 * 1024;
const ROW_LOG_BYTES = 1024;

/**
 * SQLite's log, and when it is written back into the database. What a log holds that this process did not sync itself,
 * after a start or a failed commit, may exist in the page cache alone, and what is added behind it would be lost with
 * it. Such a log is in doubt until `sync` has written it back.
 */
export class WriteAheadLog {
  readonly #files: OutboxFiles;
  readonly #clock: Clock;
  readonly #onDamage: (error: unknown) => void;
  /** What was added since it was written back, about. */
  #bytes = 0;
  #is_doubtful = true;
  /** When it may be written back early again, in monotonic ms. */
  #early_from_ms = Number.NEGATIVE_INFINITY;

  /** `onDamage`: the database turned out to be damaged while the log was written back. */
  constructor(files: OutboxFiles, clock: Clock, onDamage: (error: unknown) => void) {
    this.#files = files;
    this.#clock = clock;
    this.#onDamage = onDamage;
  }

  /** Puts the log in doubt. */
  doubt(): void {
    this.#is_doubtful = true;
  }

  /** Writes back a log in doubt. Throws what SQLite throws. */
  sync(): void {
    if (this.#is_doubtful) this.#files.db.pragma('wal_checkpoint(TRUNCATE)');
    this.#is_doubtful = false;
  }

  /** Notes a commit of so many rows with so many bytes of text. */
  noteCommit(rows: number, text_bytes: number): void {
    this.noteBytes(COMMIT_LOG_BYTES + rows * ROW_LOG_BYTES + text_bytes);
  }

  /** Notes what else was added. */
  noteBytes(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Makes it due, whatever its size. */
  noteSalvage(): void {
    this.#bytes = WRITE_BACK_AT_LATEST_BYTES;
  }

  /** Whether it must be written back now, whatever waits. */
  get is_full(): boolean {
    return this.#bytes > WRITE_BACK_AT_LATEST_BYTES;
  }

  /** Whether it may be written back early. One in doubt is written back by the next commit. */
  get is_write_back_due(): boolean {
    if (this.#bytes <= WRITE_BACK_BYTES || this.#is_doubtful) return false;
    return this.#clock.monotonicMs() >= this.#early_from_ms;
  }

  /** Writes it back early; `beginAnew` is the first commit after that. The next early one comes after a pause. */
  writeBack(beginAnew: () => void): void {
    const began_ms = this.#clock.monotonicMs();
    this.checkpoint('PASSIVE');
    beginAnew();
    const ended_ms = this.#clock.monotonicMs();
    const pause_ms = Math.min((ended_ms - began_ms) * WRITE_BACK_SHARE, WRITE_BACK_PAUSE_MAX_MS);
    this.#early_from_ms = ended_ms + pause_ms;
  }

  /** Writes it back; `TRUNCATE` empties the file, too. Never throws: the log keeps what cannot be written back. */
  checkpoint(mode: 'PASSIVE' | 'TRUNCATE'): void {
    this.#bytes = 0;
    try {
      this.#files.db.pragma(`wal_checkpoint(${mode})`);
    } catch (error) {
      // The next commit reports any other trouble with the disk.
      if (troubleOf(error) === 'damage') this.#onDamage(error);
    }
  }
}
