import { expect, it } from 'vitest';
import { NameLocks } from '../../../src/files/change/name-locks.ts';
import { Directory } from '../../../src/files/directory.ts';
import { OwnPlaces } from '../../../src/files/own-places.ts';
import { scratchFolder } from '../../support/scratch.ts';

it('a name is held by one at a time, in the order of asking, and a client that goes does not wait', async () => {
  const folder = scratchFolder();
  const own = new OwnPlaces([]);
  await using directory = await Directory.open(folder, own);
  await using again = await Directory.open(folder, own);
  const locks = new NameLocks();
  const order: string[] = [];
  const first = await locks.hold([{ directory, name: 'a' }]);
  const gone = new AbortController();
  const left = locks.hold([{ directory: again, name: 'a' }], gone.signal);
  const held = ['second', 'third'].map(async (who) => {
    const both = [again, directory].map((each, i) => ({ directory: each, name: i === 0 ? 'b' : 'a' }));
    using _ = await locks.hold(both);
    order.push(who);
  });
  using other = await locks.hold([{ directory, name: 'c' }]);
  expect(other).toBeDefined();
  gone.abort();
  await expect(left).rejects.toThrow('The client has gone.');
  await expect(locks.hold([{ directory, name: 'a' }], gone.signal)).rejects.toThrow();
  expect(order).toEqual([]);
  first[Symbol.dispose]();
  await Promise.all(held);
  expect(order).toEqual(['second', 'third']);
});
