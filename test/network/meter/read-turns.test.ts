import { expect, it } from 'vitest';
import { ReadTurns } from '../../../src/network/meter/read-turns.ts';

/** What each sandbox has read after so many steps in which all have packets, and each team's most in one step. */
function readIn(steps: number, names: string[]) {
  const turns = new ReadTurns<{ team_id: string; name: string }>();
  const parties = names.map((name) => ({ name, team_id: name.slice(0, 1) }));
  const read: Record<string, number> = {};
  const most: Record<string, number> = {};
  for (let step = 0; step < steps; step++) {
    const now: Record<string, number> = {};
    for (const [{ name, team_id }, packets] of turns.next(parties)) {
      read[name] = (read[name] ?? 0) + packets;
      now[team_id] = (now[team_id] ?? 0) + packets;
    }
    for (const [team_id, packets] of Object.entries(now))
      most[team_id] = Math.max(most[team_id] ?? 0, packets);
  }
  return { read, most };
}

const SIXTEEN = Array.from({ length: 16 }, (_, i) => `a${i}`);

it('one sandbox reads as much in a step as sixteen of another team', () => {
  const { read, most } = readIn(16, [...SIXTEEN, 'b']);
  expect(most).toEqual({ a: 64, b: 64 });
  expect(read.b).toBe(16 * 64);
});

it('the sandboxes of a team take turns, and none is left out', () => {
  const { read } = readIn(16, [...SIXTEEN, 'b']);
  expect(SIXTEEN.map((name) => read[name])).toEqual(SIXTEEN.map(() => 64));
});

it('the team that goes first changes with each step', () => {
  const turns = new ReadTurns<{ team_id: string }>();
  const parties = ['a', 'b', 'c'].map((team_id) => ({ team_id }));
  const first = [1, 2, 3].map(() => turns.next(parties)[0]?.[0].team_id);
  expect(first.toSorted()).toEqual(['a', 'b', 'c']);
  expect(turns.next([])).toEqual([]);
});

it('a sandbox that alone has packets reads more of them in a step', () => {
  const turns = new ReadTurns<{ team_id: string }>();
  expect(turns.next([{ team_id: 'a' }]).map(([, packets]) => packets)).toEqual([128]);
});
