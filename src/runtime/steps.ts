import type { Fence } from './runtime.ts';

/** To be awaited before a step of a verb, with the step's name; throws `unavailable` if the sandbox is another replica's. */
export type Begin = (step: string) => Promise<void>;

/**
 * The steps of an operation. `takenBy` reads the highest number of an operation that was taken over, where the sandbox is:
 * it decides also where this replica's clock has stood still. Without a fence every step may begin.
 */
export function stepsOf(fence: Fence | undefined, takenBy: () => number): Begin {
  return async (step) => {
    if (fence === undefined) return;
    if (takenBy() > fence.number) throw fence.lose();
    await fence.check(step);
  };
}
