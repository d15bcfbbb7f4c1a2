import { expect, it } from 'vitest';
import { playRounds } from '../support/replicas/rounds.ts';
import { longSized, seeded } from './support/size.ts';

/** 500 rounds take half an hour and more: the whole machine is theirs. */
it('two replicas in random faults at random steps: what runs is what is recorded, and what was acknowledged', async () => {
  const random = seeded('replicas');
  const rounds = longSized(500);
  const given = process.env.REPLICAS_SEED;
  const seeds = given
    ? given.split(',').map(Number)
    : Array.from({ length: rounds }, () => random.below(2 ** 31));
  const broken = await playRounds({
    seeds,
    lanes: ['local', 'local', 'local-unsafe'],
    steps: 5,
    repeat: (seed) => `REPLICAS_SEED=${seed} npm run test:long -- test/long/replicas.test.ts`,
  });
  expect(broken).toEqual([]);
});
