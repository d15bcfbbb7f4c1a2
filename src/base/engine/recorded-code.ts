// Apart from `flags.ts`, which the bundler puts into a program's first file: loading that file runs the program.

/** With this flag a program keeps the code that it ran. */
const KEEP_CODE = '--no-flush-bytecode';

/**
 * Flags that make the code caches of an image reproducible: fixed seeds, no flushing of bytecode, no optimisation. The
 * content of a cache does not depend on them.
 */
export const REPRODUCIBLE = [
  '--hash-seed=1',
  '--random-seed=1',
  KEEP_CODE,
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
];

/** Whether a program with these flags of Node is to keep its code: then no garbage is collected ahead of time. */
export function keepsCode(flags: readonly string[]): boolean {
  return flags.includes(KEEP_CODE);
}
