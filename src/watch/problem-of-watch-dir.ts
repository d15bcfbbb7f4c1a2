import { type Stats, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { pathBelow, realPath } from './ignore.ts';

/**
 * Why a `watch_dir` is refused; null if it is not. It must be an absolute path, and neither a file nor inside one of the
 * daemon's own paths. A directory that does not exist is accepted; the watch waits for it.
 */
export function problemOfWatchDir(watch_dir: string, own_paths: readonly string[]): string | null {
  if (!isAbsolute(watch_dir)) return 'must be an absolute path';
  if (watch_dir.includes('\0')) return 'must not contain NUL';
  const stats = statsOf(watch_dir);
  if (stats && !stats.isDirectory()) return 'must be a directory';
  const real = realPath(watch_dir);
  const inside = own_paths.find((path) => pathBelow(realPath(path), real) !== null);
  return inside === undefined ? null : `must not be inside the daemon's own ${JSON.stringify(inside)}`;
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
