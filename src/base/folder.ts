import { mkdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a folder with all that leads to it, mode 0700; whatever has this name already stays as it is. Throws the
 * system's error. Not the platform's recursive call: that never returns where the root directory itself was removed.
 */
export async function makeFolder(path: string): Promise<void> {
  const make = () => mkdir(path, { mode: 0o700 }).catch(unlessThere);
  await make().catch(async (error) => {
    await makeFolder(parentOf(path, error));
    await make();
  });
}

/** The same, in this thread. */
export function makeFolderSync(path: string): void {
  const make = () => {
    try {
      mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      unlessThere(error);
    }
  };
  try {
    make();
  } catch (error) {
    makeFolderSync(parentOf(path, error));
    make();
  }
}

function unlessThere(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
}

/** The folder that must be made first; throws `error` where it tells of something else, or nothing is above `path`. */
function parentOf(path: string, error: unknown): string {
  const parent = dirname(path);
  const is_missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
  if (!is_missing || parent === path || parent === '/') throw error;
  return parent;
}
