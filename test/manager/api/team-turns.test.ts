import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { TeamTurns } from '../../../src/manager/api/team-turns.ts';

/** Lets everything happen that needs no further turn of the loop. */
async function thisTurn(): Promise<void> {
  for (let step = 0; step < 10; step++) await Promise.resolve();
}

it('begins one request of each team in a turn of the loop, in order, however many wait', async () => {
  const turns = new TeamTurns();
  const begun: string[] = [];
  const begin = (team_id: string, number: number) =>
    turns.take(team_id).then(() => begun.push(`${team_id}${number}`));
  for (let number = 0; number < 100; number++) void begin('a', number);
  void begin('b', 0);
  await thisTurn();
  expect(begun).toEqual(['a0', 'b0']);
  await nextTurn();
  void begin('b', 1);
  void begin('c', 0);
  await thisTurn();
  expect(begun.toSorted()).toEqual(['a0', 'a1', 'b0', 'b1', 'c0']);
  for (let turn = 0; turn < 200; turn++) await nextTurn();
  expect(begun.filter((name) => name.startsWith('a'))).toEqual(
    Array.from({ length: 100 }, (_, number) => `a${number}`),
  );
  expect(begun).toHaveLength(103);
});

it('begins a request at once after a turn in which its team began none', async () => {
  const turns = new TeamTurns();
  await turns.take('a');
  await nextTurn();
  await nextTurn();
  let is_begun = false;
  void turns.take('a').then(() => {
    is_begun = true;
  });
  await thisTurn();
  expect(is_begun).toBe(true);
});
