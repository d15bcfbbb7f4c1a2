import { describe, expect, it } from 'vitest';
import { CONTROL_SCOPE_HEADER, CONTROL_SCOPES, includesScope } from '../../src/contract/control-socket.ts';
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

describe('a control scope', () => {
  it('includes itself and every lesser one', () => {
    const included = CONTROL_SCOPES.map((given) =>
      CONTROL_SCOPES.filter((need) => includesScope(given, need)),
    );
    expect(included).toEqual([['read'], ['read', 'write'], ['read', 'write', 'manage']]);
  });

  it.each([undefined, '', 'READ', 'read, manage', 'everything', ['read', 'manage']])(
    'given as %j includes none',
    (given) => {
      for (const needed of CONTROL_SCOPES) expect(includesScope(given, needed)).toBe(false);
    },
  );
});
