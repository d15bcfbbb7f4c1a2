/**
 * Runs everything that the benchmarks do, in a few minutes, to see that it still works: the figures of a short run say
 * nothing.
 */
export const IS_SHORT = process.env.BENCH_SHORT === '1';

/** A number of rounds, records or milliseconds; in a short run `short` instead. */
export function sized(full: number, short: number): number {
  return IS_SHORT ? short : full;
}
