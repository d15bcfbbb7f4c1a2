import { setFlagsFromString } from 'node:v8';
import type { Clock } from '../../base/clock.ts';
import { collectGarbage, keepsCode } from '../../base/engine/garbage.ts';

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
  if (keepsCode(flags)) return;
  clock.after(SETTLE_MS, () => {
    if (!is_tight) collect();
  });
}
