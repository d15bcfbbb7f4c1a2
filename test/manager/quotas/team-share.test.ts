import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leftOf, shareOf } from '../../../src/manager/quotas/team-share.ts';

const BUDGET = 1_000;
const TEAMS = 4;

/** Requests of teams in turn, from an empty node; gives who was refused what, with what was held then. */
function play(percent: number, requests: { team: number; need: number }[]) {
  const share = shareOf(BUDGET, percent, 1);
  const held = Array.from({ length: TEAMS }, () => 0);
  const total = () => held.reduce((sum, each) => sum + each, 0);
  const decisions = requests.map(({ team, need }) => {
    const [before, mine] = [total(), held[team] as number];
    const left = leftOf({ budget: BUDGET, share, held: mine, kept: mine, others: before - mine });
    const is_admitted = need <= Math.min(left.node, left.team);
    if (is_admitted) held[team] = mine + need;
    return { need, mine, others: before - mine, is_admitted };
  });
  return { share, held, decisions };
}

const requestsOf = (teams: number) =>
  fc.array(fc.record({ team: fc.nat(teams - 1), need: fc.integer({ min: 1, max: 400 }) }), { maxLength: 40 });
const PERCENT = fc.integer({ min: 1, max: 100 });

describe('the share of a team', () => {
  it('is a part of the budget in which at least one sandbox has room, and all of it where there are no shares', () => {
    expect(shareOf(1_000, 25, 64)).toBe(250);
    expect(shareOf(1_001, 25, 64)).toBe(250);
    expect(shareOf(100, 25, 64)).toBe(64);
    expect(shareOf(32, 25, 64)).toBe(32);
    expect(shareOf(1_000, 100, 64)).toBe(1_000);
  });

  it('never lets all teams together exceed the budget', () => {
    fc.assert(
      fc.property(PERCENT, requestsOf(TEAMS), (percent, requests) => {
        const { held } = play(percent, requests);
        expect(held.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(BUDGET);
      }),
    );
  });

  it('refuses within the share only what the node has not, and beyond it all while another team holds something', () => {
    fc.assert(
      fc.property(PERCENT, requestsOf(TEAMS), (percent, requests) => {
        const { share, decisions } = play(percent, requests);
        for (const { need, mine, others, is_admitted } of decisions) {
          const has_room = mine + others + need <= BUDGET;
          if (mine + need <= share) expect(is_admitted).toBe(has_room);
          else if (others > 0) expect(is_admitted).toBe(false);
          else expect(is_admitted).toBe(mine + need <= BUDGET - share);
        }
      }),
    );
  });

  it('is there for a team that comes later, whatever the one that was alone has taken', () => {
    const at_most_half = fc.integer({ min: 1, max: 50 });
    fc.assert(
      fc.property(at_most_half, requestsOf(2), (percent, requests) => {
        const { share, decisions } = play(percent, requests);
        for (const { need, mine, is_admitted } of decisions) {
          if (mine + need <= share) expect(is_admitted).toBe(true);
        }
      }),
    );
  });

  it('takes nothing away: what was admitted alone stays, and what it leaves is negative', () => {
    const of = (share: number, held: number, others: number) =>
      leftOf({ budget: 100, share, held, kept: held, others });
    expect(of(25, 75, 10)).toEqual({ node: 15, team: -50 });
    expect(of(25, 70, 0)).toEqual({ node: 30, team: 5 });
    expect(of(100, 70, 20)).toEqual({ node: 10, team: 30 });
  });

  it('is of what is kept alone: beside that a team that is alone leaves a share of the whole free', () => {
    expect(leftOf({ budget: 100, share: 25, held: 60, kept: 10, others: 0 })).toEqual({ node: 40, team: 15 });
    expect(leftOf({ budget: 100, share: 25, held: 60, kept: 25, others: 0 })).toEqual({ node: 40, team: 15 });
    expect(leftOf({ budget: 100, share: 25, held: 60, kept: 25, others: 1 })).toEqual({ node: 39, team: 0 });
    expect(leftOf({ budget: 100, share: 25, held: 90, kept: 5, others: 0 })).toEqual({ node: 10, team: 20 });
  });
});
