import { constants, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { fileSystemAt } from '../base/linux/filesystem.ts';
import { ApiError } from '../contract/errors.ts';
import { O_PATH } from './calls.ts';
import { checkedPathOf } from './directory.ts';
import type { OwnPlaces } from './own-places.ts';

/** Neither a pipe nor a terminal can hold the opening up, and none becomes the daemon's own. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** An open regular file. The caller closes the handle. */
export interface RegularFile {
  handle: FileHandle;
  stat: Stats;
  /** The kernel makes its content while it is read, so that its size says nothing. */
  is_pseudo: boolean;
}

/**
 * Opens a regular file for reading; links are followed. What is not a file is never opened: first the name alone is, and
 * what it leads to is judged; then that very file.
 * Throws `is_a_directory`, `not_a_file`, `forbidden`, or the system's error.
 */
export async function openRegularFile(path: string | Buffer, own: OwnPlaces): Promise<RegularFile> {
  const name = await open(path, O_PATH);
  try {
    const stat = await name.stat();
    await checkedPathOf(name, stat, own);
    checkRegular(stat);
    await own.checkNames(stat);
    const handle = await open(`/proc/self/fd/${name.fd}`, READ);
    const is_pseudo = stat.blocks === 0 && (await isPseudo(handle));
    return { handle, stat: await handle.stat(), is_pseudo };
  } finally {
    await name.close();
  }
}

/** Throws `is_a_directory` or `not_a_file` unless this is a regular file. */
export function checkRegular(stat: Stats): void {
  if (stat.isDirectory()) throw new ApiError('is_a_directory');
  if (!stat.isFile()) throw new ApiError('not_a_file');
}

/** Whether the kernel makes the content of an open file while it is read, so that its size says nothing. */
export async function isPseudo(handle: Pick<FileHandle, 'fd'>): Promise<boolean> {
  return (await fileSystemAt(`/proc/self/fd/${handle.fd}`)).kind === 'pseudo';
}
