import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** A control group that a process is in; see cgroups(7). */
export interface ControlGroup {
  /** The controllers of a version 1 hierarchy; empty for the unified hierarchy of version 2. */
  controllers: string[];
  /** From the root of the hierarchy as this process sees it. */
  path: string;
}

/** A mounted hierarchy that has a controller. */
export interface Hierarchy {
  version: 1 | 2;
  /** The folder of its topmost group that is mounted here. */
  mount: string;
}

/** A mounted unified hierarchy. */
interface Mount {
  /** The group that is mounted, from the root of the hierarchy. */
  root: string;
  point: string;
}

/** The groups of a process; empty if it has ended or they cannot be read. */
export async function readGroups(pid: number | 'self'): Promise<ControlGroup[]> {
  const table = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
  return table.split('\n').flatMap((line) => {
    const [, controllers = '', ...path] = line.split(':');
    if (path.length === 0) return [];
    return [{ controllers: controllers.split(',').filter(Boolean), path: path.join(':') }];
  });
}

/** The path of a process's group in the unified hierarchy; null if it has ended or there is none. */
export async function unifiedPath(pid: number | 'self'): Promise<string | null> {
  return (await readGroups(pid)).find(({ controllers }) => controllers.length === 0)?.path ?? null;
}

/** This process's group in the unified hierarchy: its folder and its path; null if it has none. */
export async function ownGroup(): Promise<{ folder: string; path: string } | null> {
  const path = await unifiedPath('self');
  const mount = path === null ? null : unifiedMount();
  return path === null || mount === null
    ? null
    : { folder: join(mount.point, relative(mount.root, path)), path };
}

/** Where the unified hierarchy is mounted; null if it is not. */
export function unifiedMountPoint(): string | null {
  return unifiedMount()?.point ?? null;
}

/** The mounted hierarchy that has a controller; null if none has. A controller is in one hierarchy at a time. */
export function hierarchyOf(controller: string, mountinfo = mounts()): Hierarchy | null {
  const unified = unifiedMount(mountinfo);
  if (unified !== null && controllersAt(unified.point).includes(controller)) {
    return { version: 2, mount: unified.point };
  }
  const line = mountinfo.find((each) => {
    const [, options = ''] = / - cgroup \S+ (\S+)$/.exec(each) ?? [];
    return options.split(',').includes(controller);
  });
  const mount = line?.split(' ')[4];
  return mount === undefined ? null : { version: 1, mount };
}

function controllersAt(folder: string): string[] {
  try {
    return readFileSync(join(folder, 'cgroup.controllers'), 'utf8').trim().split(' ');
  } catch {
    return [];
  }
}

/** Source: proc_pid_mountinfo(5), fields 4 and 5. */
function unifiedMount(mountinfo = mounts()): Mount | null {
  for (const line of mountinfo) {
    if (!line.includes(' - cgroup2 ')) continue;
    const [, , , root, point] = line.split(' ');
    if (root !== undefined && point !== undefined) return { root, point };
  }
  return null;
}

function mounts(): string[] {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  } catch {
    return [];
  }
}
