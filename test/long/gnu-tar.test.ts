import { expect, it } from 'vitest';
import { compareWithTar } from '../support/files/tar-comparison.ts';
import { longSized, seeded } from './support/size.ts';

it('whatever GNU tar packs is unpacked as GNU tar does, and damage is refused by name', async () => {
  const count = longSized(3_000);
  const { equal, refused, unclear } = await compareWithTar(seeded('tar'), count);
  console.log(`${equal} equal, ${refused} refused, ${unclear} that tar complains about`);
  expect(equal + refused + unclear).toBe(count);
});
