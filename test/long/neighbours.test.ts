import { describe, it } from 'vitest';
import { networkProblem } from '../../src/network/problem.ts';
import { expectNeighboursToBeServed } from '../support/neighbours/property.ts';
import { longSized, seeded } from './support/size.ts';

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;

describe.skipIf(problem !== null)(`16 hostile sandboxes of a team, again and again${why}`, () => {
  const random = seeded('neighbours');

  for (let round = 1; round <= longSized(3); round++) {
    const seed = random.below(2 ** 31);
    it(`cost another team nothing that it may have, round ${round}, seed ${seed}`, async () => {
      await expectNeighboursToBeServed({ sandboxes: 16, seed, lives: longSized(8) });
    });
  }
});
