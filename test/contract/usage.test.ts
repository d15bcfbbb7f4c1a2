import { expect, it } from 'vitest';
import { unitOf, WINDOW_TYPES } from '../../src/contract/words.ts';

it('tells the unit of each window type', () => {
  expect(WINDOW_TYPES.map((type) => [type, unitOf(type)])).toEqual([
    ['sandbox.runtime_mib_milliseconds', 'mib_milliseconds'],
    ['sandbox.runtime_millicpu_milliseconds', 'millicpu_milliseconds'],
    ['sandbox.egress_bytes', 'bytes'],
    ['sandbox.ingress_bytes', 'bytes'],
    ['sandbox.transfer_bytes', 'bytes'],
  ]);
});
