import { expect, it } from 'vitest';
import { CONTROL_SCOPE_HEADER, CONTROL_SCOPES } from '../../src/contract/control-scopes.ts';
import { contractTable, contractWords } from '../support/contract.ts';

it('are those of the contract, weakest first', () => {
  const [none, ...scopes] = contractTable('### The control socket').map(([scope]) =>
    scope?.replaceAll('`', ''),
  );
  expect(none).toBe('none');
  expect([...CONTROL_SCOPES]).toEqual(scopes);
});

it('are named in the header of the contract', () => {
  expect(contractWords('A request on it names').map((name) => name.toLowerCase())).toEqual([
    CONTROL_SCOPE_HEADER,
  ]);
});
