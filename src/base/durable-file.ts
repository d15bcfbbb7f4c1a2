import { constants } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

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

/** Syncs a folder, so that the names in it survive a power cut. Throws the system's error. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
