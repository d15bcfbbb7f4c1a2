import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { kernelRandom } from './entropy.ts';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const IN_PLACE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

/**
 * Creates or replaces a small file atomically: after a power cut it holds either the old content or the new one,
 * complete. Anything at the temporary path `<path>.new` is removed, never followed. Throws the system's error.
 */
export async function replaceFile(path: string, content: string, mode = 0o600): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { recursive: true, force: true });
  const file = await open(temporary, NEW_FILE, mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** Like `replaceFile`, but synchronous. */
export function replaceFileNow(path: string, content: string | Uint8Array, mode = 0o600): void {
  const temporary = `${path}.new`;
  rmSync(temporary, { recursive: true, force: true });
  writeAndSync(openSync(temporary, NEW_FILE, mode), content);
  renameSync(temporary, path);
  syncNow(dirname(path));
}

/**
 * Creates a small file of mode 0600 with its whole content, unless its name is taken: of several programs that call
 * this at once, one succeeds. Returns whether this one did. Throws the system's error.
 */
export function createFileNow(path: string, content: string): boolean {
  const draft = `${path}.${kernelRandom(6).toString('hex')}`;
  try {
    writeAndSync(openSync(draft, NEW_FILE, 0o600), content);
    linkSync(draft, path);
    syncNow(dirname(path));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Writes a small file of mode 0600 where it is, for one in a folder that this program may not write to. A power cut may
 * leave it empty; a link is not followed. Throws the system's error.
 */
export function overwriteFileNow(path: string, content: string): void {
  const file = openSync(path, IN_PLACE, 0o600);
  fchmodSync(file, 0o600); // before the content: the file may have been there with another mode
  writeAndSync(file, content);
}

/** Makes a file with mode 0600 under any umask; SQLite gives the files beside it the same mode. Throws the system's error. */
export function touch(path: string): void {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  fchmodSync(file, 0o600);
  closeSync(file);
}

/** Syncs a folder, so that the names in it survive a power cut. Throws the system's error. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Syncs a file's content, or the names in a folder, while the caller waits. Throws the system's error. */
export function syncNow(path: string): void {
  const file = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Takes over the descriptor. */
function writeAndSync(file: number, content: string | Uint8Array): void {
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
