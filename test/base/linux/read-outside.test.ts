import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readOutside } from '../../../src/base/linux/read-outside.ts';
import { scratchFolder } from '../../support/scratch.ts';

test('a file is read whole, or as much of it as is asked for', async () => {
  expect(await readOutside('/etc/passwd', 1024 * 1024)).toEqual(readFileSync('/etc/passwd'));
  const path = join(scratchFolder(), 'long');
  const bytes = Buffer.alloc(300_000, 'abc');
  writeFileSync(path, bytes);
  expect(await readOutside(path, 1024 * 1024)).toEqual(bytes);
  expect(await readOutside(path, 100_001)).toEqual(bytes.subarray(0, 100_001));
});

test.each(['/no/such/file', '/etc', '/dev/zero', '/etc/passwd/below'])(
  '%s is no file to read',
  async (path) => {
    expect(await readOutside(path, 100)).toBeNull();
  },
);

test('calls while a file is read share the next read, which sees what was written before them', async () => {
  const path = join(scratchFolder(), 'file');
  writeFileSync(path, 'old');
  const first = readOutside(path, 100);
  writeFileSync(path, 'new');
  const others = [readOutside(path, 100), readOutside(path, 100)] as const;
  expect(others[0]).toBe(others[1]);
  expect(String(await others[0])).toBe('new');
  expect(await first).not.toBeNull();
});
