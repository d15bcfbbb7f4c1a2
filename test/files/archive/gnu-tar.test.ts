import { expect, it } from 'vitest';
import { compareWithTar } from '../../support/files/tar-comparison.ts';
import { Random } from '../../support/random.ts';

it('what GNU tar packs is unpacked as GNU tar does, and damage is refused by name', async () => {
  const { equal, refused } = await compareWithTar(new Random(37), 80);
  expect(Math.min(equal, refused)).toBeGreaterThan(10);
});
