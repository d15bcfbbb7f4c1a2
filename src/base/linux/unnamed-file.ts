import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { checked, libc } from './libc.ts';

const linkat = libc.func('int linkat(int from, const char *path, int to, const char *new_path, int flags)');

/** `O_TMPFILE`, of open(2). */
const UNNAMED = 0o20000000 | constants.O_DIRECTORY;
/** `AT_FDCWD` and `AT_SYMLINK_FOLLOW`, of openat(2). */
const HERE = -100;
const FOLLOW = 0x400;

/** A new file without a name on the file system of a directory: it is gone with its last descriptor. Throws the system's error. */
export function openUnnamed(directory: string): Promise<FileHandle> {
  return open(directory, UNNAMED | constants.O_RDWR, 0o600);
}

/** Gives an open file without a name its name, which nothing has yet. Throws SystemError. */
export function nameFile({ fd }: FileHandle, path: string): void {
  checked('linkat', linkat(HERE, `/proc/self/fd/${fd}`, HERE, path, FOLLOW));
}
