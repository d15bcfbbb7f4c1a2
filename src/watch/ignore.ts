import { realpathSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import picomatch from 'picomatch';
import { shownPath } from './index/name.ts';

/** Whether a path, relative to the watched directory and in internal form, is left out with all below it. */
export type Ignored = (relative_path: string) => boolean;

/**
 * Compiles `--watch-ignore` and the daemon's own paths. A glob without a slash matches a name at any depth, one with
 * a slash the path from `watch_dir` on; what matches is left out with everything below it. Nothing is ignored unless
 * asked. Source: contract sections 3 ("Own traffic") and 4.
 */
export function compileIgnored(watch_dir: string, globs: string[], own_paths: string[]): Ignored | null {
  const own = own_paths.flatMap((path) => ownPath(watch_dir, path));
  const matchers = globs.map((glob) => compileGlob(watch_dir, glob));
  if (own.length === 0 && matchers.length === 0) return null;
  return (path) => own.includes(path) || matchers.some((matches) => matches(shownPath(path).text));
}

/** The real path of something that may not exist yet. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}

/** Where `inner` is below `outer`, or null: `''` where they are the same. */
export function pathBelow(outer: string, inner: string): string | null {
  const path = relative(outer, inner);
  return path === '..' || path.startsWith('../') ? null : path;
}

function ownPath(watch_dir: string, path: string): string[] {
  const below = pathBelow(realPath(watch_dir), realPath(path));
  return below ? [below] : [];
}

function compileGlob(watch_dir: string, glob: string): (path: string) => boolean {
  const inside = glob.startsWith(`${watch_dir}/`) ? glob.slice(watch_dir.length) : glob;
  const anchored = inside.startsWith('/') || inside.startsWith('./');
  const pattern = inside.replace(/^(\.?\/)+/, '').replace(/\/+$/, '');
  // Names may hold newlines, and `*` matches a leading dot.
  return picomatch(pattern, {
    dot: true,
    basename: !anchored && !pattern.includes('/'),
    flags: 's',
    nonegate: true,
  });
}
