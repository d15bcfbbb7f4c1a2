import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { START } from '../../../src/manager/database/cursor.ts';
import { Followers } from '../../../src/manager/events/followers.ts';

const isSettled = (wait: Promise<void>) => Promise.race([wait.then(() => true), nextTurn(false)]);

it('a follower that comes while the end of the feed is read is woken: it may have read before', async () => {
  const end = Promise.withResolvers<typeof START>();
  const followers = new Followers({ end: () => end.promise, teams: async () => [] });
  const first = followers.add('team_1');
  const polled = followers.poll();
  const late = followers.add('team_2').next();
  end.resolve(START);
  await polled;
  expect(await isSettled(late)).toBe(true);
  first.leave();
});

it('followers are woken for events of their own team, and counted until they leave', async () => {
  const added = [{ ...START, seq: 1, team_id: 'team_1' }];
  const followers = new Followers({ end: async () => START, teams: async () => added });
  const [one, other] = [followers.add('team_1'), followers.add('team_2')];
  await followers.poll();
  const waits = [one.next(), other.next()];
  await followers.poll();
  expect(await Promise.all(waits.map(isSettled))).toEqual([true, false]);
  expect(followers.count).toBe(2);
  for (const each of [one, one, other]) each.leave();
  expect(followers.count).toBe(0);
});
