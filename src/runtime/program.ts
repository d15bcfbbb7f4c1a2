import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StartError } from '../contract/errors.ts';

/** The daemon's program as it is on the host. */
export interface DaemonProgram {
  /** The Node binary that runs it. */
  node: string;
  /** The folder of the built programs. */
  dist: string;
  /** The folder of the packages with native code, which are not in the built programs. */
  packages: string;
}

/** Two managers may start at the same time: each copies to a name of its own. */
let copies = 0;

/** Finds the built daemon, beside the built manager or, from source, in `dist`. Throws StartError where it is not. */
export function daemonProgram(): DaemonProgram {
  const is_built = import.meta.url.endsWith('.cjs');
  const sandboxd = fileURLToPath(
    new URL(is_built ? './sandboxd.cjs' : '../../dist/sandboxd.cjs', import.meta.url),
  );
  if (!existsSync(sandboxd))
    throw new StartError(`${sandboxd} is not there: the local runtime needs the built sandboxd`);
  const sqlite = dirname(createRequire(sandboxd).resolve('better-sqlite3/package.json'));
  return { node: process.execPath, dist: dirname(sandboxd), packages: dirname(sqlite) };
}

/**
 * A copy of the Node binary that can be run and not read. The kernel keeps the memory of what runs from it from every
 * process without privileges, the daemon's own user included: a sandbox's processes cannot read the webhook's secret.
 * Made where it is missing; those of other versions are removed, which harms nobody who runs from them.
 */
export function privateNode(data_dir: string, node: string): string {
  const folder = join(data_dir, '.program');
  const { size, mtimeMs } = statSync(node);
  const path = join(folder, `node-${size}-${Math.trunc(mtimeMs)}`);
  if (existsSync(path)) return path;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const next = join(folder, `.${basename(path)}-${process.pid}-${++copies}`);
  copyFileSync(node, next, constants.COPYFILE_FICLONE);
  chmodSync(next, 0o111);
  renameSync(next, path);
  return path;
}
