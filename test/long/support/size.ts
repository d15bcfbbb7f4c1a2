import { Random } from '../../support/random.ts';

/** Seed of this run: `LONG_SEED` repeats one. */
const SEED = Number(process.env.LONG_SEED ?? 1);

/** Factor on every size: `LONG_SIZE=0.1` tries a test out, `LONG_SIZE=10` runs it for a night. */
const SIZE = Number(process.env.LONG_SIZE ?? 1);

/** Random numbers of a test: the same for the same seed and name, whatever other tests draw. */
export function seeded(name: string): Random {
  let mixed = SEED >>> 0;
  for (const char of name) mixed = Math.imul(mixed ^ char.charCodeAt(0), 0x01000193) >>> 0;
  return new Random(mixed);
}

/** A number of rounds, cases or milliseconds, at least 1. */
export function longSized(full: number): number {
  return Math.max(1, Math.round(full * SIZE));
}
