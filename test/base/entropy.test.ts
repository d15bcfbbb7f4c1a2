import { expect, it } from 'vitest';
import { kernelRandom } from '../../src/base/entropy.ts';

it.each([0, 1, 32, 100_000])('gives %i bytes, filled to the last', (size_bytes) => {
  const bytes = kernelRandom(size_bytes);
  expect(bytes).toHaveLength(size_bytes);
  // Sixteen zeros in a row come once in 2^128 readings.
  if (size_bytes >= 32) expect(bytes.subarray(-16).equals(Buffer.alloc(16))).toBe(false);
});

it('gives other bytes at each call', () => {
  const seen = new Set(Array.from({ length: 1_000 }, () => kernelRandom(16).toString('hex')));
  expect(seen.size).toBe(1_000);
});
