import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ownGroup, readGroups, unifiedMountPoint, unifiedPath } from '../../../src/base/linux/cgroup.ts';

describe('control groups', () => {
  it('are read for a process as the kernel lists them', async () => {
    const lines = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n').filter(Boolean);
    const groups = await readGroups('self');
    expect(groups.map(({ controllers, path }) => `${controllers.join(',')}:${path}`)).toEqual(
      lines.map((line) => line.slice(line.indexOf(':') + 1)),
    );
    expect(await readGroups(process.pid)).toEqual(groups);
  });

  it('are none for a process that does not exist', async () => {
    expect(await readGroups(0)).toEqual([]);
    expect(await unifiedPath(0)).toBeNull();
  });

  it('of the unified hierarchy are found where it is mounted', async () => {
    const is_mounted = readFileSync('/proc/self/mountinfo', 'utf8').includes(' - cgroup2 ');
    const point = unifiedMountPoint();
    expect(point !== null).toBe(is_mounted);
    const own = await ownGroup();
    expect(own === null).toBe(!is_mounted || (await unifiedPath('self')) === null);
    if (point !== null) expect(existsSync(join(point, 'cgroup.procs'))).toBe(true);
    if (own !== null) expect(own.folder.startsWith(point as string)).toBe(true);
  });
});
