import { mkdir, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

// Of `node:fs`, because `node:fs/promises` takes a good part of the start to load.
const made = promisify(mkdir);

/**
 * Creates a folder and its missing parents with mode 0700. Leaves an existing entry of this name unchanged. Throws the
 * system's error. The platform's recursive call is not used: it never returns if the root directory was removed.
 */
export async function makeFolder(path: string): Promise<void> {
  const make = () => made(path, { mode: 0o700 }).catch(unlessThere);
  await make().catch(async (error) => {
    await makeFolder(parentOf(path, error));
    await make();
  });
}

/** Like `makeFolder`, but synchronous. */
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

/** The folder to create first; throws `error` if it has another cause or `path` has no parent. */
function parentOf(path: string, error: unknown): string {
  const parent = dirname(path);
  const is_missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
  if (!is_missing || parent === path || parent === '/') throw error;
  return parent;
}
