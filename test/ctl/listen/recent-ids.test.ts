import { expect, it } from 'vitest';
import { RecentIds } from '../../../src/ctl/listen/recent-ids.ts';

it('tells ids seen before from new ones, and forgets the oldest beyond its limit', () => {
  const recent = new RecentIds(2);
  expect(['a', 'b', 'a', 'c', 'b', 'a'].map((id) => recent.add(id))).toEqual([
    true,
    true,
    false,
    true,
    false,
    true,
  ]);
});
