import { expect, it } from 'vitest';
import { OUTPUT_STREAMS, RESTART_POLICIES } from '../../src/contract/words.ts';
import { contractTable } from '../support/contract.ts';

it('are restarted by the policies of the contract, never unless told', () => {
  const [option, standard] =
    contractTable('### Options').find(([flag]) => flag?.startsWith('`--restart')) ?? [];
  expect(option).toBe(`\`--restart ${RESTART_POLICIES.join('\\|')}\``);
  expect(standard).toBe(`\`${RESTART_POLICIES[0]}\``);
});

it('have the streams of every program, in the order of their descriptors', () => {
  expect(OUTPUT_STREAMS).toEqual(['stdout', 'stderr']);
});
