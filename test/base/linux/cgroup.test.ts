import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  hierarchyOf,
  ownGroup,
  readGroups,
  unifiedMountPoint,
  unifiedPath,
} from '../../../src/base/linux/cgroup.ts';
import { scratchFolder } from '../../support/scratch.ts';

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

  it('of a controller are found in whichever hierarchy has it', () => {
    const unified = scratchFolder();
    writeFileSync(join(unified, 'cgroup.controllers'), 'cpuset memory hugetlb\n');
    const mountinfo = [
      '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
      '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct',
      '36 31 0:30 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd',
      `41 31 0:38 / ${unified} rw,relatime - cgroup2 cgroup2 rw`,
    ];
    expect(hierarchyOf('memory', mountinfo)).toEqual({ version: 2, mount: unified });
    expect(hierarchyOf('cpu', mountinfo)).toEqual({ version: 1, mount: '/sys/fs/cgroup/cpu,cpuacct' });
    expect(hierarchyOf('pids', mountinfo)).toBeNull();
    expect(hierarchyOf('memory', mountinfo.slice(0, 3))).toBeNull();
    expect(hierarchyOf('cpu', [])).toBeNull();
  });
});
