import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../clock.ts';
import { keepsCode } from './recorded-code.ts';

/** From the end of a start until its garbage is collected: the ready event is delivered by then. */
const SETTLE_MS = 1_500;
/** With nothing to do for this long, a thread is most likely not delayed by a collection. */
const QUIET_MS = 100;
/** With more items than this in that time a thread is busy: a collection would drop code that it continues to use. */
const BUSY_ITEMS = 1_000;

let is_small = false;

/**
 * Makes the engine collect garbage early: records and pieces of output are short-lived, and the heap stays at a third of
 * its size for no more CPU. To be called with the first of them, not before: changed flags make the engine recompile its
 * code.
 */
export function keepHeapSmall(): void {
  if (is_small) return;
  is_small = true;
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=20');
}

/**
 * Collects what a start leaves behind, a moment after it: the engine itself does so only once as much again is allocated,
 * which in a daemon at rest is never. Not where records flow by then: a collection stops the program for about 20 ms. Nor
 * where code is to be kept.
 */
export function settleAfterStart(clock: Clock, collect = collectOnce, flags = process.execArgv): void {
  if (keepsCode(flags)) return;
  clock.after(SETTLE_MS, () => {
    if (!is_small) collect();
  });
}

/**
 * Collects once what the start of a thread leaves behind, 5 MB in the outbox's writer, in a moment in which the thread has
 * nothing to do. The engine itself does not: what flows through is small. Not in a thread that is busy from the beginning,
 * nor where code is to be kept.
 */
export class SettleWhenQuiet {
  readonly #clock: Clock;
  readonly #collect: () => void;
  readonly #settled_ms: number;
  #items = 0;
  #worked_ms = 0;
  #is_scheduled = false;
  #is_over: boolean;

  /** To be created at the start of the thread. */
  constructor(clock: Clock, collect = collectOnce, flags = process.execArgv) {
    this.#clock = clock;
    this.#collect = collect;
    this.#settled_ms = clock.monotonicMs() + SETTLE_MS;
    this.#is_over = keepsCode(flags);
  }

  /** Notes that the thread has just handled this many items. */
  noteWork(items: number): void {
    if (this.#is_over) return;
    this.#items += items;
    this.#is_over = this.#items > BUSY_ITEMS;
    this.#worked_ms = this.#clock.monotonicMs();
    if (!this.#is_scheduled) this.#schedule();
  }

  #schedule(): void {
    this.#is_scheduled = true;
    const quiet_ms = Math.max(this.#settled_ms, this.#worked_ms + QUIET_MS);
    this.#clock.after(quiet_ms - this.#clock.monotonicMs(), () => this.#collectIfQuiet());
  }

  #collectIfQuiet(): void {
    this.#is_scheduled = false;
    if (this.#is_over) return;
    if (this.#clock.monotonicMs() < this.#worked_ms + QUIET_MS) {
      this.#schedule();
      return;
    }
    this.#is_over = true;
    this.#collect();
  }
}

/**
 * Collects all garbage of this thread, and code that was needed once, in about 20 ms. Both flags have their defaults again
 * afterwards, because code that was compiled ahead is accepted with these alone. Flags are one for all threads: where
 * another one has taken them back meanwhile, nothing is collected.
 */
export function collectOnce(): void {
  setFlagsFromString('--expose-gc');
  // The parser of responses would be compiled again, by the optimising compiler this time: see `response-parser.ts`.
  setFlagsFromString('--no-flush-liftoff-code');
  const collect: ((options: object) => void) | undefined = runInNewContext('globalThis.gc');
  collect?.({ type: 'major', flavor: 'last-resort', execution: 'sync' });
  setFlagsFromString('--flush-liftoff-code');
  setFlagsFromString('--no-expose-gc');
}
