import { type Stats, statfsSync, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { CatalogueError } from '../contract/errors.ts';
import { pathBelow, realPath } from './ignore.ts';

/**
 * Refuses a `watch_dir` that cannot be meant: not absolute, a file, or inside one of the daemon's own paths. One
 * that does not exist is waited for.
 * @throws CatalogueError `invalid_request`
 */
export function checkWatchDir(watch_dir: string, own_paths: string[]): void {
  const refuse = (reason: string): never => {
    throw new CatalogueError('invalid_request', `watch_dir ${JSON.stringify(watch_dir)} ${reason}`, {
      field: 'watch_dir',
    });
  };
  if (!isAbsolute(watch_dir)) refuse('is not an absolute path');
  if (watch_dir.includes('\0')) refuse('holds a null byte');
  const stats = statsOf(watch_dir);
  if (stats && !stats.isDirectory()) refuse('is not a directory');
  const real = realPath(watch_dir);
  const inside = own_paths.find((path) => pathBelow(realPath(path), real) !== null);
  if (inside !== undefined) refuse(`is inside the daemon's own ${JSON.stringify(inside)}`);
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** File systems that change without this kernel seeing it, by the magic number that statfs tells. */
const REMOTE = new Map([
  [0x6969, 'nfs'],
  [0x01021997, '9p'],
  [0x65735546, 'fuse'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x517b, 'smb'],
  [0x00c36400, 'ceph'],
  [0x5346414f, 'afs'],
  [0x73757245, 'coda'],
  [0x0bd00bd0, 'lustre'],
  [0x01161970, 'gfs2'],
  [0x7461636f, 'ocfs2'],
  [0x786f4256, 'vboxsf'],
]);

/** The kind of a remote file system at a path; null where the kernel sees every change. */
export function remoteFileSystem(path: string | Buffer): string | null {
  try {
    return REMOTE.get(statfsSync(path).type >>> 0) ?? null;
  } catch {
    return null;
  }
}
