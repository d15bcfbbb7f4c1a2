import { lstatSync, readdirSync, statSync } from 'node:fs';
import { type FileSystem, fileSystemOf } from './file-systems.ts';
import type { ProbeResult } from './index/file-stat.ts';
import { nameOf, systemPath } from './index/name.ts';

/** The file system as the watch sees it. Paths and names are in internal form; nothing throws. */
export interface Disk {
  /** Looks at a name once; follows a symbolic link only where asked to. */
  probe(path: string, follow?: boolean): ProbeResult;
  /** The names in a directory; null where it cannot be listed. */
  list(path: string): string[] | null;
  /** What a directory is on, where that is not an ordinary file system of this machine. */
  fileSystem(path: string): FileSystem | null;
}

const MISSING = new Set(['ENOENT', 'ENOTDIR']);

/** The real one. Calls block: the watch has a thread of its own. */
export const disk: Disk = {
  probe(path, follow = false) {
    try {
      const statOf = follow ? statSync : lstatSync;
      const stats = statOf(systemPath(path), { throwIfNoEntry: false });
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

  fileSystem: fileSystemOf,
};
