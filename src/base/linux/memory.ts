import { systemClock } from '../clock.ts';
import { loadLibc } from './native.ts';

/** Time in which what is large may pass once more, in ms: to give memory back takes some milliseconds. */
const GIVE_BACK_MS = 1_000;

let is_due = false;

/**
 * Notes that something large passes through memory: a moment later all that is free by then goes back to the system. The C
 * library keeps it, for what lies behind it. Without the addon that calls the library nothing is given back.
 */
export function giveBackSoon(): void {
  if (is_due) return;
  is_due = true;
  systemClock.after(GIVE_BACK_MS, () => void giveBack());
}

async function giveBack(): Promise<void> {
  is_due = false;
  (await loadLibc())?.trimMemory();
}
