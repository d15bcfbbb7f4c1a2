import { expect, test } from 'vitest';
import { progressText } from '../../../src/ctl/files/progress.ts';

test('progress shows share, bytes, rate and the time left, as far as they are known', () => {
  const MIB = 1024 * 1024;
  expect(progressText('f', 0, 100, 0)).toBe('f  [                    ] 0%  0 B  0 B/s');
  expect(progressText('f', 25 * MIB, 100 * MIB, 1_000)).toBe(
    'f  [#####               ] 25%  25.0 MiB  25.0 MiB/s  3.0 s left',
  );
  expect(progressText('f', 100, 100, 500)).toBe('f  [####################] 100%  100 B  200 B/s');
  expect(progressText('f', 2 * MIB, null, 2_000)).toBe('f  2.0 MiB  1.0 MiB/s');
  expect(progressText('f', 0, 0, 5)).toContain('100%');
});
