import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FileLock, FileLockedError } from '../../src/base/file-lock.ts';
import { scratchFolder } from '../support/scratch.ts';

it('a file lock is held until it is released, and names its holder', () => {
  const path = join(scratchFolder(), 'lock');
  const lock = new FileLock(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(() => new FileLock(path)).toThrow(FileLockedError);
  expect(() => new FileLock(path)).toThrow(`is locked (pid ${process.pid})`);
  lock.release();
  new FileLock(path).release();
});

it('a file of something else is emptied, and a folder that is missing is an error of the system', () => {
  const path = join(scratchFolder(), 'lock');
  writeFileSync(path, 'x'.repeat(10_000));
  new FileLock(path).release();
  expect(readFileSync(path, 'latin1')).not.toContain('xx');
  expect(() => new FileLock(join(path, 'below'))).toThrow(expect.objectContaining({ code: 'ENOTDIR' }));
});
