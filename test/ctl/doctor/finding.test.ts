import { expect, it } from 'vitest';
import { error, ok, warning, worst } from '../../../src/ctl/doctor/finding.ts';

it('exits with 0, 1 or 2 by the most severe finding', () => {
  expect(worst([])).toBe(0);
  expect(worst([ok('a', ''), ok('b', '')])).toBe(0);
  expect(worst([warning('a', ''), ok('b', '')])).toBe(1);
  expect(worst([warning('a', ''), error('b', ''), ok('c', '')])).toBe(2);
});
