import fc from 'fast-check';
import { expect, it } from 'vitest';
import { mebibytes, millicores, sizeText } from '../../src/contract/limits.ts';

it.each([
  ['1Mi', 1],
  ['128Mi', 128],
  ['1Gi', 1_024],
  ['2Ti', 2_097_152],
  ['999999999Mi', 999_999_999],
])('%s are %d MiB', (text, size) => {
  expect(mebibytes(text)).toBe(size);
});

it.each(['', '0Mi', '01Mi', '-1Mi', '1.5Gi', '1Ki', '1G', '1gi', '1 Gi', ' 1Gi', '1Gi\n', '1000000000Mi'])(
  'no size is %j',
  (text) => {
    expect(mebibytes(text)).toBeNull();
  },
);

it.each([
  ['0.1', 100],
  ['0.001', 1],
  ['2', 2_000],
  [0.5, 500],
  [1.125, 1_125],
  ['9999.999', 9_999_999],
])('%s cores are %d thousandths', (cores, millis) => {
  expect(millicores(cores)).toBe(millis);
});

it.each(['', '0', '0.000', '.5', '1.', '-1', '1e3', '0.0001', '10000', '00.5', 'two', 0, -1, 1e-7, Infinity])(
  'no number of cores is %j',
  (cores) => {
    expect(millicores(cores)).toBeNull();
  },
);

it('every thousandth of a core is kept exactly', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9_999_999 }), (millis) => {
      expect(millicores((millis / 1_000).toFixed(3))).toBe(millis);
    }),
  );
});

it('a size is told in the largest unit that divides it', () => {
  for (const [size, text] of [
    [128, '128Mi'],
    [1_536, '1536Mi'],
    [10_240, '10Gi'],
    [2_097_152, '2Ti'],
  ] as const) {
    expect(sizeText(size)).toBe(text);
    expect(mebibytes(text)).toBe(size);
  }
  expect(sizeText(0)).toBe('0Mi');
});
