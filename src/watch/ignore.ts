import { realpathSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import picomatch from 'picomatch';
import { shownPath } from './index/name.ts';

/** Whether a path is ignored together with everything below it. The path is relative to `watch_dir`, in internal form. */
export type Ignored = (relative_path: string) => boolean;

/**
 * Compiles the globs of `--watch-ignore` and the daemon's own paths; null if nothing is ignored. A glob without a slash
 * matches a name at any depth, a glob with a slash matches the path below `watch_dir`. Nothing is ignored by default.
 * Source: contract sections 3 ("Own traffic") and 4.
 */
export function compileIgnored(watch_dir: string, globs: string[], own_paths: string[]): Ignored | null {
  const own = own_paths.flatMap((path) => ownPath(watch_dir, path));
  const matchers = globs.map((glob) => compileGlob(watch_dir, glob));
  if (own.length === 0 && matchers.length === 0) return null;
  return (path) => own.includes(path) || matchers.some((matches) => matches(shownPath(path).text));
}

/** The real path of a file or directory, which need not exist: then that of its parent, with its name. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}

/** The path of `inner` relative to `outer`: `''` if they are the same, null if it is not below `outer`. */
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
  // It names the directory itself, which is never ignored.
  if (pattern === '') return () => false;
  // Names may contain newlines, and `*` also matches a leading dot.
  return picomatch(pattern, {
    dot: true,
    basename: !anchored && !pattern.includes('/'),
    flags: 's',
    nonegate: true,
  });
}
