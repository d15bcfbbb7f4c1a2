import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readOutside } from '../../../src/base/linux/read-outside.ts';
import { eventually } from '../../support/eventually.ts';
import { CAN_HANG, hungMount, unlessHangs } from '../../support/hung-mount.ts';
import { ManualClock } from '../../support/manual-clock.ts';
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

test.runIf(CAN_HANG)(
  `a file that does not answer is given up after 2 s, and then at once until its reader has ended${unlessHangs}`,
  async () => {
    const clock = new ManualClock();
    const mount = await hungMount({ file: { text: 'text', mode: 0o644 } });
    const path = join(mount.path, 'file');
    expect(String(await readOutside(path, 100, clock))).toBe('text');
    await mount.hang();
    const both = Promise.allSettled([readOutside(path, 100, clock), readOutside(path, 100, clock)]);
    await eventually(async () => expect(await mount.waiting()).toBe(1));
    await clock.advance(2_000);
    const unavailable = { code: 'unavailable', details: { path } };
    const failed = { status: 'rejected', reason: expect.objectContaining(unavailable) };
    expect(await both).toEqual([failed, failed]);
    await expect(readOutside(path, 100, clock)).rejects.toMatchObject(unavailable);
    expect(await mount.waiting()).toBe(1);
    expect(String(await readOutside('/etc/hostname', 100, clock))).not.toBe('');
    await mount.answer();
    await eventually(async () => expect(String(await readOutside(path, 100, clock))).toBe('text'));
  },
);
