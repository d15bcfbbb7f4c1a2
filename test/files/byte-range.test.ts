import { expect, test } from 'vitest';
import { parseRange } from '../../src/files/byte-range.ts';

test.each([
  ['bytes=0-', { start: 0, end: 10 }],
  ['bytes=3-5', { start: 3, end: 6 }],
  ['bytes=3-99', { start: 3, end: 10 }],
  ['bytes=-4', { start: 6, end: 10 }],
  ['bytes=-40', { start: 0, end: 10 }],
  ['bytes=9-', { start: 9, end: 10 }],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=5-3', null],
  ['bytes=0-1,4-5', null],
  ['bytes=-', null],
  ['items=0-1', null],
  [undefined, null],
])('of ten bytes, %s asks for %j', (header, expected) => {
  expect(parseRange(header, 10)).toEqual(expected);
});

test('an empty file has no range', () => {
  expect([parseRange('bytes=0-', 0), parseRange('bytes=-1', 0)]).toEqual(['unsatisfiable', 'unsatisfiable']);
});
