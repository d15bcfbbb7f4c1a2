import { expect, test } from 'vitest';
import { exitCodeOf, parseSignal } from '../../../src/process/tree/signals.ts';

test('a signal is named with or without SIG, in any case', () => {
  expect(['SIGTERM', 'term', 'Term'].map(parseSignal)).toEqual(['SIGTERM', 'SIGTERM', 'SIGTERM']);
  for (const value of ['SIGNONE', '', 15, null]) expect(() => parseSignal(value)).toThrow('signal');
});

test('an end by a signal has the code of a shell', () => {
  expect([exitCodeOf(3, null), exitCodeOf(null, 'SIGKILL'), exitCodeOf(null, null)]).toEqual([3, 137, 0]);
});
