import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../../base/clock.ts';

/** With this flag a program keeps the code that it ran, such as one whose code is recorded for the images. */
const KEEPS_CODE = '--no-flush-bytecode';

/** From the end of a start until its garbage is collected: the ready event is delivered by then. */
const SETTLE_MS = 1_500;

let is_tight = false;

/**
 * Makes the engine collect garbage early: records and pieces of output are short-lived, and the heap stays at a third of
 * its size for no more CPU. To be called with the first of them, not before: changed flags make the engine recompile its
 * code.
 */
export function tightenHeap(): void {
  if (is_tight) return;
  is_tight = true;
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=20');
}

/**
 * Collects what a start leaves behind, a moment after it: the engine itself does so only once as much again is allocated,
 * which in a daemon at rest is never. Not where records flow by then: a collection stops the program for about 20 ms. Nor
 * where code is to be kept.
 */
export function settleHeap(clock: Clock, collect = collectGarbage, flags = process.execArgv): void {
  if (flags.includes(KEEPS_CODE)) return;
  clock.after(SETTLE_MS, () => {
    if (!is_tight) collect();
  });
}

/**
 * Collects all garbage, and code that was needed once. Both flags have their defaults again afterwards, because code that
 * was compiled ahead is accepted with these alone.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  // The parser of responses would be compiled again, by the optimising compiler this time: see `parser-tier.ts`.
  setFlagsFromString('--no-flush-liftoff-code');
  const collect: (options: object) => void = runInNewContext('gc');
  collect({ type: 'major', flavor: 'last-resort', execution: 'sync' });
  setFlagsFromString('--flush-liftoff-code');
  setFlagsFromString('--no-expose-gc');
}
