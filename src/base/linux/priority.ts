import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** The nice value of a program whose answers others wait for, whatever else the machine computes. */
const NICE = -10;

/** The nice value that this program was started with. */
export const given_nice = getPriority();

/**
 * Raises the priority of this program's threads, and of the threads and programs that it starts from now on. Those of the
 * engine as well: what collects garbage waits for all of them. Without the right to it everything works, with longer waits
 * on a busy machine.
 */
export function raisePriority(): void {
  if (given_nice <= NICE) return;
  for (const thread of threads()) trySetting(Number(thread), NICE);
}

/** The numbers of this program's threads; on Linux each has a priority of its own. */
function threads(): string[] {
  try {
    return readdirSync('/proc/self/task');
  } catch {
    return ['0'];
  }
}

/** Gives a program that was just started the nice value that this one was started with. */
export function lowerPriorityOf(pid: number | undefined): void {
  if (pid !== undefined) trySetting(pid, given_nice);
}

function trySetting(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch {
    // Only a matter of speed.
  }
}
