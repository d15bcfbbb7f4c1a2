import { expect, it } from 'vitest';
import { allEnded } from '../../src/base/all-ended.ts';

it('gives the results in their order', async () => {
  expect(await allEnded([Promise.resolve(1), 'two', Promise.resolve(null)])).toEqual([1, 'two', null]);
  expect(await allEnded([])).toEqual([]);
});

it('throws the first failure in their order, once everything has ended', async () => {
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
