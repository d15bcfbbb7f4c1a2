import { expect, it } from 'vitest';
import { ATTEMPT_ERRORS, DELIVERY_STATES, FINAL_STATES } from '../../src/contract/words.ts';
import { contractWords } from '../support/contract.ts';

it('have the states that the contract names', () => {
  const named = contractWords('Records move from `pending`');
  expect([...DELIVERY_STATES].filter((state) => state !== 'foreign').sort()).toEqual(
    [...new Set(named)].sort(),
  );
  expect(contractWords('`foreign` is for records')).toContain('foreign');
});

it('are final in every state in which nothing is attempted, unless another sandbox left the record', () => {
  expect([...FINAL_STATES, 'pending', 'foreign'].sort()).toEqual([...DELIVERY_STATES].sort());
});

it('name the errors of an attempt as the contract does, in its order', () => {
  expect(contractWords('`error` or null (').filter((word) => word !== 'error')).toEqual([...ATTEMPT_ERRORS]);
});
