import { accessSync, constants, mkdirSync, rmdirSync } from 'node:fs';
import { type Clock, runTime, sleep } from '../../base/clock.ts';

const POLL_MS = 5;
/** A process that SIGKILL does not end within this is stuck in the kernel. */
const REMOVE_TIMEOUT_MS = 10_000;

/** Creates the folder that sandboxes' groups are in. Throws the system's error if this program must not make groups there. */
export function makeParentGroup(folder: string): void {
  mkdirSync(folder, { recursive: true });
  // A manager of another user may have made it.
  accessSync(folder, constants.W_OK);
}

/**
 * Removes a control group as soon as it is empty: a process is in its group until the kernel is done with it. Idempotent;
 * throws if it is not empty within 10 s. `onBusy` is called each time that it is not.
 */
export async function removeGroup(group: string, clock: Clock, onBusy = () => {}): Promise<void> {
  const until_ms = runTime(clock).monotonicMs() + REMOVE_TIMEOUT_MS;
  while (!isRemoved(group)) {
    if (runTime(clock).monotonicMs() > until_ms) throw new Error(`control group ${group} is not empty`);
    onBusy();
    await sleep(runTime(clock), POLL_MS);
  }
}

/** Removes a control group; false if something is in it. */
export function isRemoved(group: string): boolean {
  try {
    rmdirSync(group);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EBUSY') return false;
    if (code !== 'ENOENT') throw error;
  }
  return true;
}
