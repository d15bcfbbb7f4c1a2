import { expect, it } from 'vitest';
import { isTeamId } from '../../src/contract/ids.ts';

it('limits the id of a team to 128 harmless characters', () => {
  for (const id of ['a', 'team_1', 'org:team-2.eu', 'x'.repeat(128)]) expect(isTeamId(id), id).toBe(true);
  for (const id of ['', 'a b', 'a/b', 'a\n', 'ü', 'x'.repeat(129)]) expect(isTeamId(id), id).toBe(false);
});
