import { link, rename, unlink } from 'node:fs/promises';
import { ApiError } from '../../contract/errors.ts';
import type { BytePath } from '../byte-path.ts';
import type { Directory } from '../directory.ts';
import { isSystemError } from '../file-error.ts';

/** A name that something is moved from or to. */
export interface NamedIn {
  directory: Directory;
  name: BytePath;
}

/** How something is put into its place. */
export interface PutOptions {
  /** Whether it may take the place of something else, which for a directory is an empty one. */
  overwrite: boolean;
  is_directory: boolean;
}

/**
 * Moves a name within one file system, in one step. Without `overwrite`, a file that somebody makes meanwhile under the
 * new name stays too. Throws `already_exists` or the system's error.
 */
export async function putInPlace(from: NamedIn, to: NamedIn, options: PutOptions): Promise<void> {
  const [old_path, new_path] = [from.directory.at(from.name), to.directory.at(to.name)];
  if (!options.overwrite) {
    if (await to.directory.look(to.name)) throw new ApiError('already_exists');
    if (!options.is_directory && (await wasLinked(old_path, new_path))) {
      await unlink(old_path);
      return;
    }
  }
  await rename(old_path, new_path);
}

/** Unlike a rename, a second name takes nobody's place. False where the file system or the account can have none. */
async function wasLinked(old_path: string | Buffer, new_path: string | Buffer): Promise<boolean> {
  try {
    await link(old_path, new_path);
    return true;
  } catch (error) {
    if (isSystemError(error, 'EPERM', 'EACCES', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS')) return false;
    throw error;
  }
}
