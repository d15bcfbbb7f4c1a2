import { expect, it } from 'vitest';
import { fuzzArchives } from '../../support/files/archive-fuzz.ts';
import { Random } from '../../support/random.ts';

it('archives of any shape cost calls and bytes in proportion to their size, and stay inside', async () => {
  const { unpacked, refused } = await fuzzArchives(new Random(35), 150);
  expect(Math.min(unpacked, refused)).toBeGreaterThan(20);
});
