import { describe, expect, it } from 'vitest';
import { accessDiffers, contentDiffers, sameIdentity } from '../../../src/watch/index/file-stat.ts';

const file = { dev: 0, ino: 1, birth: 2, mode: 0o100644, uid: 0, gid: 0, size: 3, mtime: 4 };

describe('the stat of a file', () => {
  it.each([{ ino: 9 }, { dev: 9 }, { birth: 9 }, { mode: 0o040644 }])('with %o is another file', (other) => {
    expect(sameIdentity(file, { ...file, ...other })).toBe(false);
  });

  it('identifies the file whatever changed in it', () => {
    expect(sameIdentity(file, { ...file, mode: 0o100600, uid: 1, gid: 1, size: 9, mtime: 9 })).toBe(true);
  });

  it('shows changed content by size or time, of regular files only', () => {
    const directory = { ...file, mode: 0o040755 };
    expect(contentDiffers(file, file)).toBe(false);
    expect(contentDiffers(file, { ...file, size: 9 })).toBe(true);
    expect(contentDiffers(file, { ...file, mtime: 9 })).toBe(true);
    expect(contentDiffers(directory, { ...directory, mtime: 9 })).toBe(false);
  });

  it('shows changed access by mode or owner', () => {
    expect(accessDiffers(file, { ...file, size: 9 })).toBe(false);
    for (const change of [{ mode: 0o100600 }, { uid: 9 }, { gid: 9 }]) {
      expect(accessDiffers(file, { ...file, ...change })).toBe(true);
    }
  });
});
