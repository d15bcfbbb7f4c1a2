import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { added, divided, share } from '../../src/base/exact.ts';

const number = fc.oneof(
  fc.nat(1_000),
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  fc.integer({ min: Number.MAX_SAFE_INTEGER - 1_000, max: Number.MAX_SAFE_INTEGER }),
);
const positive = number.map((value) => Math.max(1, value));

describe('exact arithmetic', () => {
  it('multiplies and divides as whole numbers of any length do', () => {
    fc.assert(
      fc.property(number, number, positive, (given, b, divisor) => {
        const a = Math.min(given, divisor);
        const product = BigInt(a) * BigInt(b);
        const expected = { whole: product / BigInt(divisor), rest: product % BigInt(divisor) };
        const { whole, rest } = share(a, b, divisor);
        expect({ whole: BigInt(whole), rest: BigInt(rest) }).toEqual(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  it('adds shares whose rests are too long to be added', () => {
    fc.assert(
      fc.property(number, number, positive, (a, b, divisor) => {
        fc.pre((BigInt(a) + BigInt(b)) / BigInt(divisor) <= BigInt(Number.MAX_SAFE_INTEGER));
        const [first, second] = [divided(a, divisor), divided(b, divisor)];
        const { whole, rest } = added(first, second, divisor);
        expect(BigInt(whole) * BigInt(divisor) + BigInt(rest)).toBe(BigInt(a) + BigInt(b));
        expect(rest).toBeLessThan(divisor);
      }),
    );
  });
});
