import { type Stats, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { ApiError } from '../contract/errors.ts';
import { pathBelow, realPath } from './ignore.ts';

/**
 * Checks a `watch_dir`: it must be an absolute path, and neither a file nor inside one of the daemon's own paths. A
 * directory that does not exist is accepted; the watch waits for it.
 * @throws ApiError `invalid_request`, with `field: 'watch_dir'`
 */
export function checkWatchDir(watch_dir: string, own_paths: string[]): void {
  const refuse = (reason: string): never => {
    throw new ApiError('invalid_request', `watch_dir ${JSON.stringify(watch_dir)} ${reason}`, {
      field: 'watch_dir',
    });
  };
  if (!isAbsolute(watch_dir)) refuse('must be an absolute path');
  if (watch_dir.includes('\0')) refuse('must not contain NUL');
  const stats = statsOf(watch_dir);
  if (stats && !stats.isDirectory()) refuse('must be a directory');
  const real = realPath(watch_dir);
  const inside = own_paths.find((path) => pathBelow(realPath(path), real) !== null);
  if (inside !== undefined) refuse(`must not be inside the daemon's own ${JSON.stringify(inside)}`);
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
