import { expect, it } from 'vitest';
import { DIMENSIONS, factsOf } from '../../src/contract/words.ts';

it('tells the kind and unit of each dimension', () => {
  expect(
    Object.fromEntries(DIMENSIONS.map((each) => [each, Object.values(factsOf(each)).join(' ')])),
  ).toEqual({
    active_sandboxes: 'capacity count',
    sandbox_claims: 'rate claims',
    api_requests: 'rate requests',
    network_egress_bytes: 'rate bytes',
    network_ingress_bytes: 'rate bytes',
  });
});
