import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { type Clock, sleep } from '../base/clock.ts';
import { kernelRandom } from '../base/entropy.ts';

/**
 * The kernel's clock for times of files advances in steps of up to 10 ms: two changes within one step bear the same
 * time. Twice that, in ms.
 */
const STEP_MS = 20;

/** Identifies a state of a file's content: another one has another stamp, once this one is settled. */
export function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].map(part).join('-');
}

/** Whether a further change would certainly bear another time. */
export function isSettled({ ctimeMs }: Stats, clock: Clock): boolean {
  return Math.abs(clock.wallMs() - ctimeMs) > STEP_MS;
}

/** How often a file is looked at again while it changes. */
const LOOKS_MAX = 3;

/**
 * The stamp of an open file as an entity tag, with the state it stands for. Waits for a moment after a change, so that
 * the next one gets another tag; a file that keeps changing gets one that nothing ever has again.
 * Source: contract section 4, "Files"; RFC 9110, section 8.8.3.
 */
export async function entityTag(handle: FileHandle, clock: Clock): Promise<{ etag: string; stat: Stats }> {
  for (let looks = 1; ; looks++) {
    const stat = await handle.stat();
    if (isSettled(stat, clock)) return { etag: `"${stampOf(stat)}"`, stat };
    if (looks === LOOKS_MAX) return { etag: `"${stampOf(stat)}-${kernelRandom(6).toString('hex')}"`, stat };
    await sleep(clock, STEP_MS);
  }
}

function part(value: number): string {
  // Times have fractions of a millisecond.
  return Math.round(value * 1_000).toString(36);
}
