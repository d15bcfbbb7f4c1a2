import { readdir, readFile, rmdir, unlink } from 'node:fs/promises';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { type BytePath, below, joined } from '../byte-path.ts';
import { Directory } from '../directory.ts';
import { conflictAt, isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { findPlace } from '../place.ts';

/** Each level holds a descriptor. */
const DEPTH_MAX = 400;
/** Names of one directory that are removed together. */
const TOGETHER = 16;

/** What is removed. */
export interface RemoveRequest {
  path: BytePath;
  /** Whether a directory may have something in it. */
  recursive: boolean;
  signal?: AbortSignal;
}

/**
 * Removes a file, a link itself, or a directory. Throws `not_found`, `directory_not_empty`, `conflict` for the root and
 * for mount points, `forbidden`, or the system's error.
 */
export async function removePath({ path, recursive, signal }: RemoveRequest, own: OwnPlaces): Promise<void> {
  checkNamed(path, 'path');
  const { directory, name, stat } = await findPlace(path, own, { follow: false });
  await using _ = directory;
  if (name === '.') throw conflictAt('/', 'cannot be removed');
  if (!stat) throw new ApiError('not_found');
  if (!stat.isDirectory()) await unlink(directory.at(name));
  else {
    const real = joined(directory.real, name);
    await own.checkWhole(real, stat);
    await checkUnmounted(real);
    if (recursive) await removeTree(directory, name, own, signal);
    else await rmdir(directory.at(name));
  }
  await directory.sync();
}

/**
 * Removes a name and everything in it, also while somebody else does. No link is followed, whoever swaps one in. Throws
 * `conflict` at a mount point.
 */
export async function removeTree(...given: Parameters<typeof removeLevel>): Promise<void> {
  await removeLevel(...given).catch((error) => {
    if (!isSystemError(error, 'ENOENT')) throw error;
  });
}

async function removeLevel(
  directory: Directory,
  name: BytePath,
  own: OwnPlaces,
  signal?: AbortSignal,
  depth = 0,
): Promise<void> {
  signal?.throwIfAborted();
  if (await wasUnlinked(directory, name)) return;
  if (depth === DEPTH_MAX) throw conflictAt(joined(directory.real, name), 'is nested too deep');
  await using inside = await Directory.open(directory.at(name), own, true);
  if (inside.stat.dev !== directory.stat.dev) throw conflictAt(inside.real, 'is a mount point');
  const names = await readdir(inside.at(), 'latin1');
  const directories: BytePath[] = [];
  for (let i = 0; i < names.length; i += TOGETHER) {
    signal?.throwIfAborted();
    const some = names.slice(i, i + TOGETHER);
    const unlinked = await Promise.all(some.map((each) => wasUnlinked(inside, each)));
    directories.push(...some.filter((_, at) => !unlinked[at]));
  }
  for (const each of directories) await removeTree(inside, each, own, signal, depth + 1);
  await rmdir(directory.at(name));
}

/** Throws `invalid_request` for a path that names a directory by `.` or `..`. */
export function checkNamed(path: BytePath, field: string): void {
  const last = path.split('/').findLast((name) => name !== '');
  if (last === '.' || last === '..') throw invalidField(field, 'must not end with . or ..');
}

/** Throws `conflict` if something is mounted on a directory or below it. */
export async function checkUnmounted(real: BytePath): Promise<void> {
  const mounts = await readFile('/proc/self/mountinfo', 'latin1');
  for (const line of mounts.split('\n')) {
    const [, , , , mounted] = line.split(' ');
    if (mounted === undefined) continue;
    const path = mounted.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
    if (below(real, path) !== null) throw conflictAt(path, 'is a mount point');
  }
}

/** False for a directory. */
async function wasUnlinked(directory: Directory, name: BytePath): Promise<boolean> {
  try {
    await unlink(directory.at(name));
    return true;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return true;
    if (!isSystemError(error, 'EISDIR', 'EPERM')) throw error;
    if (isSystemError(error, 'EPERM') && !(await directory.look(name))?.isDirectory()) throw error;
    return false;
  }
}
