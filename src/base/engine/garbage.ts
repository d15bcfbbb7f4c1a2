import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** With this flag a program keeps the code that it ran, such as one whose code is recorded for the images. */
const KEEPS_CODE = '--no-flush-bytecode';

/** Whether a program with these flags of Node is to keep its code: then no garbage is collected ahead of time. */
export function keepsCode(flags: readonly string[]): boolean {
  return flags.includes(KEEPS_CODE);
}

/**
 * Collects all garbage of this thread, and code that was needed once, in about 20 ms. Both flags have their defaults again
 * afterwards, because code that was compiled ahead is accepted with these alone.
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
