import { lstatSync, opendirSync, readdirSync, statSync } from 'node:fs';
import { type FileSystem, fileSystemOf } from '../base/linux/filesystem.ts';
import type { ProbeResult } from './index/file-stat.ts';
import { fsPath, nameOf } from './index/name.ts';

/** The file system as the watch uses it. Paths and names are in internal form; no method throws. */
export interface Disk {
  /** Reads the metadata of a path once. A symbolic link is followed only with `follow`. */
  probe(path: string, follow?: boolean): ProbeResult;
  /** The names in a directory; null if it cannot be listed, or has more than `max`. */
  list(path: string, max?: number | null): string[] | null;
  /** The file system of a directory; null if that cannot be told. */
  fileSystem(path: string): FileSystem | null;
}

const MISSING = new Set(['ENOENT', 'ENOTDIR']);

/** The disk of this machine. The calls block, which is why the watch has a thread of its own. */
export const disk: Disk = {
  probe(path, follow = false) {
    try {
      const statOf = follow ? statSync : lstatSync;
      const stats = statOf(fsPath(path), { throwIfNoEntry: false });
      if (stats === undefined) return 'missing';
      const { dev, ino, mode, uid, gid, size } = stats;
      const { birthtimeMs: birth, mtimeMs: mtime, ctimeMs: ctime, nlink: links } = stats;
      return { dev, ino, birth, mode, uid, gid, size, mtime, ctime, links };
    } catch (error) {
      return MISSING.has((error as NodeJS.ErrnoException).code ?? '') ? 'missing' : 'hidden';
    }
  },

  list(path, max = null) {
    try {
      if (max !== null) return listAtMost(path, max);
      const names = readdirSync(fsPath(path));
      if (!names.some((name) => name.includes('\ufffd'))) return names;
      return readdirSync(fsPath(path), { encoding: 'buffer' }).map(nameOf);
    } catch {
      return null;
    }
  },

  fileSystem(path) {
    try {
      return fileSystemOf(fsPath(path));
    } catch {
      return null;
    }
  },
};

/** Reads a directory in parts: one without an end would fill the memory before a single call returned. */
function listAtMost(path: string, max: number): string[] | null {
  // Node's types know no names as bytes here.
  const dir = opendirSync(fsPath(path) as string, {
    encoding: 'buffer' as BufferEncoding,
    bufferSize: 256,
  });
  try {
    const names: string[] = [];
    for (let entry = dir.readSync(); entry; entry = dir.readSync()) {
      if (names.length === max) return null;
      names.push(nameOf(entry.name as unknown as Buffer));
    }
    return names;
  } finally {
    dir.closeSync();
  }
}
