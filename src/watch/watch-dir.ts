import { type Stats, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { ApiError } from '../contract/errors.ts';
import { pathBelow, realPath } from './ignore.ts';

/**
 * Refuses a `watch_dir` that cannot be meant: not absolute, a file, or inside one of the daemon's own paths. One
 * that does not exist is waited for.
 * @throws ApiError `invalid_request`
 */
export function checkWatchDir(watch_dir: string, own_paths: string[]): void {
  const refuse = (reason: string): never => {
    throw new ApiError('invalid_request', `watch_dir ${JSON.stringify(watch_dir)} ${reason}`, {
      field: 'watch_dir',
    });
  };
  if (!isAbsolute(watch_dir)) refuse('is not an absolute path');
  if (watch_dir.includes('\0')) refuse('holds a null byte');
  const stats = statsOf(watch_dir);
  if (stats && !stats.isDirectory()) refuse('is not a directory');
  const real = realPath(watch_dir);
  const inside = own_paths.find((path) => pathBelow(realPath(path), real) !== null);
  if (inside !== undefined) refuse(`is inside the daemon's own ${JSON.stringify(inside)}`);
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
