import { chmodSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { getSystemErrorMessage } from 'node:util';
import { makeFolderSync } from '../../../base/folder.ts';
import { StartError } from '../../../contract/errors.ts';
import { DATABASE_FILES } from './database-file.ts';

/** Files beside the database whose names are fixed. */
const OTHER_FILES = ['lock', 'control-token', 'high-water'];

/** What to do where the directory is another user's, as the default is without root. */
const CHOOSE_ANOTHER = '; choose another one with --state-dir';

/**
 * Makes the state directory, or refuses one that somebody else could have prepared.
 * Source: contract section 5 and the rule that planted links and foreign owners are refused.
 */
export function prepareStateDir(state_dir: string): void {
  try {
    makeFolderSync(state_dir);
  } catch (error) {
    const { errno, message } = error as NodeJS.ErrnoException;
    const reason = errno === undefined ? message : getSystemErrorMessage(errno);
    throw new StartError(`state directory ${state_dir}: ${reason}${CHOOSE_ANOTHER}`, 1, error);
  }
  const stat = lstatSync(state_dir);
  if (!stat.isDirectory())
    throw new StartError(`state directory ${state_dir} is not a directory (symbolic links are refused)`);
  if (stat.uid !== process.geteuid?.())
    throw new StartError(`state directory ${state_dir} belongs to user ${stat.uid}${CHOOSE_ANOTHER}`);
  if (stat.mode & 0o022) throw new StartError(`state directory ${state_dir} is writable by other users`);
  if ((stat.mode & 0o777) !== 0o700) chmodSync(state_dir, 0o700);
  for (const name of [...DATABASE_FILES, ...OTHER_FILES]) checkFile(join(state_dir, name));
}

/** Throws StartError unless a file is missing or a plain file of this user; makes its mode 0600. */
export function checkFile(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return;
  if (!stat.isFile() || stat.nlink > 1)
    throw new StartError(`${path} is not a regular file (links are refused)`);
  if (stat.uid !== process.geteuid?.()) throw new StartError(`${path} belongs to user ${stat.uid}`);
  if ((stat.mode & 0o777) !== 0o600) chmodSync(path, 0o600);
}
