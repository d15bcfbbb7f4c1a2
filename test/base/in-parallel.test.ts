import fc from 'fast-check';
import { expect, it } from 'vitest';
import { allEnded, inParallel } from '../../src/base/in-parallel.ts';

it('works on every item once, in order of their start, and on no more at once than it may', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(30), fc.integer({ min: 1, max: 8 }), async (count, at_once) => {
      const items = Array.from({ length: count }, (_, n) => n);
      const begun: number[] = [];
      let running = 0;
      let most = 0;
      await inParallel(items, at_once, async (item) => {
        begun.push(item);
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      });
      expect(begun).toEqual(items);
      expect(most).toBe(Math.min(at_once, count));
    }),
    { numRuns: 30 },
  );
});

it('tries all items even if some fail, and then throws the first error', async () => {
  const tried: number[] = [];
  const work = inParallel([1, 2, 3, 4], 2, async (item) => {
    tried.push(item);
    if (item % 2 === 1) throw new Error(`item ${item}`);
  });
  await expect(work).rejects.toThrow('item 1');
  expect(tried).toEqual([1, 2, 3, 4]);
});

it('work that has ended gives its results in their order', async () => {
  expect(await allEnded([Promise.resolve(1), 'two', Promise.resolve(null)])).toEqual([1, 'two', null]);
  expect(await allEnded([])).toEqual([]);
});

it('work that has ended throws the first failure in its order, once everything has ended', async () => {
  const ends: string[] = [];
  let finish = () => {};
  const slow = new Promise<void>((resolve) => {
    finish = resolve;
  }).then(() => {
    ends.push('slow');
    throw new Error('first in order');
  });
  const all = allEnded([slow, Promise.reject(new Error('first in time'))]).catch((error: Error) => {
    ends.push(error.message);
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(ends).toEqual([]);
  finish();
  await all;
  expect(ends).toEqual(['slow', 'first in order']);
});
