import { expect, it } from 'vitest';
import { fuzzArchives } from '../support/files/archive-fuzz.ts';
import { longSized, seeded } from './support/size.ts';

it('many archives of any shape cost calls and bytes in proportion to their size, and stay inside', async () => {
  const count = longSized(10_000);
  const { unpacked, refused } = await fuzzArchives(seeded('archives'), count);
  expect(unpacked + refused).toBe(count);
});
