import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs';
import { kernelRandom } from '../base/entropy.ts';
import { StartError } from '../contract/errors.ts';

/** Reads the control token; makes one, with mode 0600, where the file is missing or empty. Contract section 4. */
export function controlToken(path: string): string {
  try {
    return readToken(path) || makeToken(path);
  } catch (error) {
    throw new StartError(`control token ${path}: ${(error as Error).message}`);
  }
}

/** Makes a new token in place of the old one, as for a new sandbox. */
export function makeToken(path: string): string {
  const token = kernelRandom(32).toString('hex');
  writeToken(path, token);
  return token;
}

/** Writes the token that is in use to its file where that was removed. */
export function restoreToken(path: string, token: string): void {
  if (!existsSync(path)) writeToken(path, token);
}

function writeToken(path: string, token: string): void {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  const file = openSync(path, flags, 0o600);
  try {
    fchmodSync(file, 0o600);
    writeSync(file, `${token}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function readToken(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\n$/, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
