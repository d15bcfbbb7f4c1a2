import { opendir, readFile, rmdir, unlink } from 'node:fs/promises';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { type BytePath, below, joined } from '../byte-path.ts';
import type { Directory } from '../directory.ts';
import { conflictAt, isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { findPlace } from '../place.ts';
import { Trail } from '../trail.ts';
import type { NameLocks } from './name-locks.ts';

/** Names of one directory that are removed together. */
const TOGETHER = 16;
/** Names of one directory that are read together. */
const READ_TOGETHER = 256;
/** Names of directories that are kept, and of one directory at least; more are read again. */
const KEPT_MAX = 100_000;
const KEPT_MIN = 64;
/** How often somebody else may put something into what is removed, or move it. */
const DISTURBED_MAX = 100;

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
export async function removePath(
  { path, recursive, signal }: RemoveRequest,
  { own, locks }: { own: OwnPlaces; locks: NameLocks },
): Promise<void> {
  checkNamed(path, 'path');
  const { directory, name, stat } = await findPlace(path, own, { follow: false });
  await using _ = directory;
  if (name === '.') throw conflictAt('/', 'cannot be removed');
  if (!stat) throw new ApiError('not_found');
  if (!stat.isDirectory()) {
    using __ = await locks.hold([{ directory, name }], signal);
    await unlink(directory.at(name));
  } else {
    const real = joined(directory.real, name);
    await own.checkWhole(real, stat);
    await checkUnmounted(real);
    if (recursive) await removeTree(directory, name, own, signal);
    else await rmdir(directory.at(name));
  }
  await directory.sync();
}

/**
 * Removes a name and everything in it, however deep, also while somebody else does. No link is followed, whoever swaps one
 * in. Throws `conflict` at a mount point, or where what is removed is moved away again and again.
 */
export async function removeTree(
  directory: Directory,
  name: BytePath,
  own: OwnPlaces,
  signal?: AbortSignal,
): Promise<void> {
  await using trail = new Trail(directory, own);
  await new Removal(trail, signal).run(name);
}

/** Directories of one directory that are still to be removed. */
interface Level {
  directories: BytePath[];
  /** False if there are more, which are read once these have gone. */
  is_whole: boolean;
}

/** Goes down and back along a trail, so that neither the stack nor descriptors grow with the depth. */
class Removal {
  readonly #trail: Trail;
  readonly #signal: AbortSignal | undefined;
  readonly #device: number;
  /** Of each directory below the top. */
  readonly #levels: Level[] = [];
  /** Their names. */
  #kept = 0;
  #disturbed = 0;

  constructor(trail: Trail, signal: AbortSignal | undefined) {
    this.#trail = trail;
    this.#device = trail.stat.dev;
    this.#signal = signal;
  }

  async run(name: BytePath): Promise<void> {
    await this.#removeOrEnter(name);
    while (this.#trail.depth > 0) {
      this.#signal?.throwIfAborted();
      const level = this.#levels.at(-1) as Level;
      const next = level.directories.pop();
      if (next !== undefined) {
        this.#kept -= 1;
        await this.#enter(next);
      } else if (level.is_whole) await this.#leave(name);
      else this.#levels[this.#levels.length - 1] = await this.#read();
    }
  }

  async #removeOrEnter(name: BytePath): Promise<void> {
    if (!(await wasUnlinked(this.#trail, name))) await this.#enter(name);
  }

  async #enter(name: BytePath): Promise<void> {
    try {
      await this.#trail.enter(name);
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return;
      // Something else has taken its place.
      if (isSystemError(error, 'ENOTDIR', 'ELOOP') && (await wasUnlinked(this.#trail, name))) return;
      throw error;
    }
    if (this.#trail.stat.dev !== this.#device) throw conflictAt(this.#trail.real, 'is a mount point');
    this.#levels.push(await this.#read());
  }

  async #leave(top_name: BytePath): Promise<void> {
    const trail = this.#trail;
    const depth = trail.depth - 1;
    const name = trail.name as BytePath;
    await trail.leave();
    this.#levelsTo(trail.depth);
    if (trail.depth === depth) {
      try {
        await rmdir(trail.at(name));
        return;
      } catch (error) {
        if (isSystemError(error, 'ENOENT')) return;
        if (!isSystemError(error, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR') || this.#disturbed === DISTURBED_MAX)
          throw error;
      }
    } else if (this.#disturbed === DISTURBED_MAX)
      throw conflictAt(trail.real, 'is changed while it is removed');
    this.#disturbed += 1;
    const above = this.#levels.at(-1);
    if (above) above.is_whole = false;
    else await this.#removeOrEnter(top_name);
  }

  #levelsTo(depth: number): void {
    while (this.#levels.length > depth) this.#kept -= (this.#levels.pop() as Level).directories.length;
  }

  /** Removes what is no directory in the current one. */
  async #read(): Promise<Level> {
    const level: Level = { directories: [], is_whole: true };
    const room = Math.max(KEPT_MIN, (KEPT_MAX - this.#kept) / 2);
    const keep = (name: BytePath) => {
      if (level.directories.length < room) level.directories.push(name);
      else level.is_whole = false;
    };
    let files: BytePath[] = [];
    const removeFiles = async () => {
      this.#signal?.throwIfAborted();
      const unlinked = await Promise.all(files.map((name) => wasUnlinked(this.#trail, name)));
      for (const [i, name] of files.entries()) if (!unlinked[i]) keep(name);
      files = [];
    };
    const options = { encoding: 'latin1', bufferSize: READ_TOGETHER } as const;
    try {
      for await (const entry of await opendir(this.#trail.at(), options)) {
        if (entry.isDirectory()) keep(entry.name);
        else files.push(entry.name);
        if (files.length === TOGETHER) await removeFiles();
      }
    } catch (error) {
      // A directory that somebody else has removed has no names.
      if (!isSystemError(error, 'ENOENT')) throw error;
    }
    await removeFiles();
    this.#kept += level.directories.length;
    return level;
  }
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
async function wasUnlinked(directory: Pick<Directory, 'at' | 'look'>, name: BytePath): Promise<boolean> {
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
