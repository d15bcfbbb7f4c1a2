import { constants } from 'node:fs';

/** What the tree keeps of a file. Times are ms since the epoch, exact to a quarter of a microsecond; `size` is in bytes. */
export interface KeptFileStat {
  dev: number;
  ino: number;
  birth: number;
  /** Type and permission bits. */
  mode: number;
  uid: number;
  gid: number;
  size: number;
  mtime: number;
}

/** The result of `lstat`, as far as the watch uses it. */
export interface FileStat extends KeptFileStat {
  /** When anything about the file last changed, including its name. */
  ctime: number;
  /** Number of hard links. */
  links: number;
}

/** The result of probing a name. `missing`: nothing has this name. `hidden`: the file system does not let us see. */
export type ProbeResult = FileStat | 'missing' | 'hidden';

/** Whether both are the same file, regardless of its name. */
export function sameIdentity(a: KeptFileStat, b: KeptFileStat): boolean {
  return a.ino === b.ino && a.birth === b.birth && a.dev === b.dev && kindOf(a.mode) === kindOf(b.mode);
}

/** Whether the content changed between `a` and `b`. Only regular files have content. */
export function contentDiffers(a: KeptFileStat, b: KeptFileStat): boolean {
  return isFile(b.mode) && (a.size !== b.size || a.mtime !== b.mtime);
}

/** Whether the mode or the owner changed. */
export function accessDiffers(a: KeptFileStat, b: KeptFileStat): boolean {
  return a.mode !== b.mode || a.uid !== b.uid || a.gid !== b.gid;
}

/** Whether `mode` is that of a directory. */
export function isDirectory(mode: number): boolean {
  return kindOf(mode) === constants.S_IFDIR;
}

/** Whether `mode` is that of a regular file. */
export function isFile(mode: number): boolean {
  return kindOf(mode) === constants.S_IFREG;
}

function kindOf(mode: number): number {
  return mode & constants.S_IFMT;
}
