import type { Stats } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import type { BytePath } from './byte-path.ts';
import { isSettled, stampOf } from './stamp.ts';

/** How long a directory's names are kept for the next page, in ms. */
const KEEP_MS = 5_000;
/** Fewer are read again as quickly. */
const NAMES_MIN = 1_000;

/** The names of the large directory that was listed last, so that its pages do not each read and sort all of them. */
export class NameCache {
  readonly #clock: Clock;
  #stamp = '';
  #names: BytePath[] | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The names of this very state of a directory; null if they are not kept. */
  get(directory: Stats): BytePath[] | null {
    return this.#names !== null && this.#stamp === stampOf(directory) ? this.#names : null;
  }

  /** Keeps the names that were read after this state was seen. */
  put(directory: Stats, names: BytePath[]): void {
    if (names.length < NAMES_MIN || !isSettled(directory, this.#clock)) return;
    this.#stamp = stampOf(directory);
    this.#names = names;
    this.#clock.after(KEEP_MS, () => {
      if (this.#names === names) this.#names = null;
    });
  }
}
