import { expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { FlowGuard } from '../../../src/network/flows/flow-guard.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A guard over a made table, in which sandboxes may have 1 000 entries. `of`: link, team and entries of each. */
function guardOver(of: [link: number, team: number, entries: number][]) {
  const state = { of, others: 0, looks: 0, is_needed: true, is_broken: false };
  const refused: string[][] = [];
  const clock = new ManualClock();
  const guard = new FlowGuard({
    flows: {
      get size() {
        return state.others + state.of.reduce((sum, [, , entries]) => sum + entries, 0);
      },
      byLink: async () => {
        state.looks += 1;
        if (state.is_broken) throw new Error('no answer');
        return new Map(state.of.map(([link, , entries]) => [link, entries]));
      },
    },
    sandboxes_held: 1_000,
    isNeeded: () => state.is_needed,
    teams: async () => new Map(state.of.map(([link, team]) => [`vsbx${link}`, team])),
    refuse: async (links) => {
      refused.push(links);
    },
    clock,
    log: createLog('silent'),
  });
  return { guard, state, refused, clock };
}

it('a guard of flows looks at one number while no team can hold too many', async () => {
  const { guard, state, refused } = guardOver([[1, 1, 500]]);
  await guard.look();
  await guard.look();
  expect([state.looks, refused]).toEqual([0, [[]]]);
});

it('a guard of flows refuses all links of a team that holds half, until it no longer does', async () => {
  const { guard, state, refused } = guardOver([
    [1, 1, 300],
    [2, 1, 201],
    [3, 2, 100],
  ]);
  await guard.look();
  await guard.look();
  state.of = [[1, 1, 300], ...state.of.slice(2)];
  await guard.look();
  expect(refused).toEqual([['vsbx1', 'vsbx2'], []]);
});

it('a guard of flows holds each team to an equal part while little is left, and keeps one for a later team', async () => {
  const { guard, state, refused } = guardOver([
    [1, 1, 400],
    [2, 2, 330],
    [3, 3, 20],
  ]);
  await guard.look();
  expect(refused).toEqual([[]]);
  state.of = [...state.of, [4, 4, 1]];
  await guard.look();
  expect(refused.at(-1)).toEqual(['vsbx1', 'vsbx2']);
});

it('a guard of flows refuses again after the rules were made again', async () => {
  const { guard, refused } = guardOver([[1, 1, 600]]);
  await guard.look();
  guard.reset();
  await guard.look();
  expect(refused).toEqual([['vsbx1'], ['vsbx1']]);
});

it('a guard of flows goes on after a look that failed, and ends when it is stopped', async () => {
  const { guard, state, refused, clock } = guardOver([[1, 1, 600]]);
  state.is_broken = true;
  await guard.start();
  await clock.advance(1_000);
  state.is_broken = false;
  await clock.advance(1_000);
  expect([state.looks, refused]).toEqual([2, [['vsbx1']]]);
  await guard.stop();
  await clock.advance(10_000);
  expect(state.looks).toBe(2);
});
