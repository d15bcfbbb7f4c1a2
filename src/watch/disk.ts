import { lstatSync, readdirSync, statfsSync, statSync } from 'node:fs';
import type { LookResult } from './facts.ts';
import { nameOf, systemPath } from './name.ts';

/** The file system as the watch sees it. Paths and names are in internal form; nothing throws. */
export interface Disk {
  /** Looks at a name once; follows a symbolic link only where asked to. */
  look(path: string, follow?: boolean): LookResult;
  /** The names in a directory; null where it cannot be listed. */
  list(path: string): string[] | null;
  /** The kind of a file system whose changes the kernel may not see; null for any other. */
  remoteKind(path: string): string | null;
}

const MISSING = new Set(['ENOENT', 'ENOTDIR']);

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

/** The real one. Calls block: the watch has a thread of its own. */
export const disk: Disk = {
  look(path, follow = false) {
    try {
      const look = follow ? statSync : lstatSync;
      const stats = look(systemPath(path), { throwIfNoEntry: false });
      if (stats === undefined) return 'missing';
      const { dev, ino, mode, uid, gid, size } = stats;
      const { birthtimeMs: birth, mtimeMs: mtime, ctimeMs: ctime, nlink: links } = stats;
      return { dev, ino, birth, mode, uid, gid, size, mtime, ctime, links };
    } catch (error) {
      return MISSING.has((error as NodeJS.ErrnoException).code ?? '') ? 'missing' : 'hidden';
    }
  },

  list(path) {
    try {
      const names = readdirSync(systemPath(path));
      if (!names.some((name) => name.includes('\ufffd'))) return names;
      return readdirSync(systemPath(path), { encoding: 'buffer' }).map(nameOf);
    } catch {
      return null;
    }
  },

  remoteKind(path) {
    try {
      return REMOTE.get(statfsSync(systemPath(path)).type >>> 0) ?? null;
    } catch {
      return null;
    }
  },
};
