import fc from 'fast-check';
import { expect, it } from 'vitest';
import { closestTo } from '../../src/base/closest.ts';

const KEYS = ['listen', 'database', 'node_memory', 'node_cpus', 'quota_fail_open'];

it.each([
  ['listn', 'listen'],
  ['lisetn', 'listen'],
  ['databse', 'database'],
  ['node-memory', 'node_memory'],
  ['NODE_MEMORY', 'node_memory'],
  ['node_cpu', 'node_cpus'],
  ['quota_fail_opened', 'quota_fail_open'],
  ['colour', null],
  ['x', null],
  ['', null],
  ['memory', null],
  ['l'.repeat(100_000), null],
])('%s is meant to be %s', (word, meant) => {
  expect(closestTo(word, KEYS)).toBe(meant);
});

it('a word with one letter too many is the word itself', () => {
  const place = fc.nat();
  fc.assert(
    fc.property(fc.constantFrom(...KEYS), place, fc.constantFrom(...'xyz_'), (key, at, letter) => {
      const index = at % (key.length + 1);
      expect(closestTo(key.slice(0, index) + letter + key.slice(index), KEYS)).toBe(key);
    }),
  );
});
