import { constants } from 'node:fs';

/** What is kept of a file. Times are ms since the epoch, exact to a quarter of a microsecond. */
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

/** What one look at a name tells. */
export interface FileStat extends KeptFileStat {
  /** When anything about it changed last, its name included. */
  ctime: number;
  links: number;
}

/** `missing`: there is nothing by this name. `hidden`: the file system does not let us know. */
export type ProbeResult = FileStat | 'missing' | 'hidden';

/** Whether both are the same file, however it is called now. */
export function sameIdentity(a: KeptFileStat, b: KeptFileStat): boolean {
  return a.ino === b.ino && a.birth === b.birth && a.dev === b.dev && kindOf(a.mode) === kindOf(b.mode);
}

/** Whether content changed: only a regular file has any. */
export function contentDiffers(a: KeptFileStat, b: KeptFileStat): boolean {
  return isFile(b.mode) && (a.size !== b.size || a.mtime !== b.mtime);
}

/** Whether mode or owner changed; a symbolic link's mode means nothing. */
export function accessDiffers(a: KeptFileStat, b: KeptFileStat): boolean {
  return a.mode !== b.mode || a.uid !== b.uid || a.gid !== b.gid;
}

export function isDirectory(mode: number): boolean {
  return kindOf(mode) === constants.S_IFDIR;
}

export function isFile(mode: number): boolean {
  return kindOf(mode) === constants.S_IFREG;
}

function kindOf(mode: number): number {
  return mode & constants.S_IFMT;
}
