import { describe, it } from 'vitest';
import { networkProblem } from '../../src/network/problem.ts';
import { expectNeighboursToBeServed } from '../support/neighbours/property.ts';

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;

describe.skipIf(problem !== null)(`16 hostile sandboxes of a team, each doing what it may${why}`, () => {
  it('cost another team nothing that it may have, and leave a reserve of every table', async () => {
    await expectNeighboursToBeServed({ sandboxes: 16, seed: 1, lives: 1 });
  });
});
