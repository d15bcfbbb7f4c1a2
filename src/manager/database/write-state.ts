import { type Clock, runTime } from '../../base/clock.ts';
import { WRITE_PROBE_MS } from '../../contract/defaults.ts';

/** A large write may be refused where the probe is not: so long its refusal counts. */
const REFUSED_MS = 2 * WRITE_PROBE_MS;

/** Codes of PostgreSQL, SQLite and the system for a refused write, and what they mean. */
const REFUSALS: [codes: RegExp, words: string][] = [
  [/^(25006|SQLITE_READONLY.*|EROFS)$/, 'it is read-only, or a standby'],
  [/^(53100|SQLITE_FULL|ENOSPC)$/, 'its disk is full'],
  [/^(58030|SQLITE_IOERR.*|EIO)$/, 'its disk cannot be written'],
];

/** Whether a database takes writes: as the writes of others, and one of its own every few seconds, have found it. */
export class WriteState {
  readonly #clock: Clock;
  #refused: { words: string; at_ms: number } | null = null;

  constructor(clock: Clock) {
    this.#clock = runTime(clock);
  }

  /** Why it takes no writes, in words; null if it does, as far as is known. */
  get refusal(): string | null {
    return this.#refused && `The database takes no writes: ${this.#refused.words}.`;
  }

  /** Notes the error of a query. */
  note(error: unknown): void {
    const { cause = error } = error as { cause?: unknown };
    const { code } = cause as { code?: unknown };
    if (typeof code !== 'string') return;
    const [, words] = REFUSALS.find(([codes]) => codes.test(code)) ?? [];
    if (words !== undefined) this.#refused = { words, at_ms: this.#clock.monotonicMs() };
  }

  /** Notes that a write has been taken. */
  taken(): void {
    if (this.#refused && this.#clock.monotonicMs() - this.#refused.at_ms >= REFUSED_MS) this.#refused = null;
  }
}
