import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fileSystemOf } from '../../../src/base/linux/filesystem.ts';

describe('a file system', () => {
  it.each([
    ['/proc', { name: 'proc', kind: 'pseudo' }],
    ['/sys', { name: 'sysfs', kind: 'pseudo' }],
    ['/dev/shm', { name: 'tmpfs', kind: 'memory' }],
  ])('is told by its number: %s', (path, expected) => {
    if (existsSync(path)) expect(fileSystemOf(path)).toEqual(expected);
  });

  it('has the name that mount(8) gives it, for every one that is mounted here and known', () => {
    const mounts = readFileSync('/proc/self/mounts', 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' ') as [string, string, string]);
    const last = new Map(mounts.map(([, point, type]) => [point, type]));
    for (const [point, type] of last) {
      if (!['proc', 'sysfs', 'tmpfs', 'ramfs', 'overlay', 'ext4', 'xfs', 'btrfs', 'devpts'].includes(type))
        continue;
      if (!existsSync(point)) continue; // its name has characters that the kernel escapes
      expect([point, fileSystemOf(point).name]).toEqual([point, type]);
    }
  });

  it('is that of the path, which has to exist', () => {
    expect(fileSystemOf(Buffer.from('/proc/self'))).toMatchObject({ name: 'proc' });
    expect(() => fileSystemOf('/nowhere/at/all')).toThrow('ENOENT');
  });
});
