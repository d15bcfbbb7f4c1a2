import { mkdirSync, readlinkSync } from 'node:fs';
import { FILE_DEPTH_MAX, LINKS_FOLLOWED_MAX } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { isTemporaryName } from '../../contract/temporary-file.ts';
import { type BytePath, below, joined, shownBytes } from '../byte-path.ts';
import type { Directory } from '../directory.ts';
import { isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { IS_TEMPORARY } from '../place.ts';
import { Trail } from '../trail.ts';
import { invalidEntry } from './archive-error.ts';

const MODE = 0o755;
/** Steps of all walks along links: of an archive without any, and for each further link. */
const STEPS_MIN = 10_000;
const STEPS_PER_LINK = 100;

/**
 * The directories below one that an archive is unpacked into. No link is followed, so that none leads out of it. Of each
 * of its two ways the last directory stays open, since the next entry is mostly near.
 */
export class Inside implements AsyncDisposable {
  readonly #top: Directory;
  readonly #signal: AbortSignal;
  /** To where something is made. */
  readonly #places: Trail;
  /** To what links name. */
  readonly #targets: Trail;
  #steps_left = STEPS_MIN;
  #made = 0;

  constructor(top: Directory, own: OwnPlaces, signal: AbortSignal) {
    this.#top = top;
    this.#signal = signal;
    this.#places = new Trail(top, own);
    this.#targets = new Trail(top, own);
  }

  /** How many directories it has made. */
  get made(): number {
    return this.#made;
  }

  /**
   * Goes to the directory of these names, which is good until the next call; missing ones are made unless `must_exist`.
   * Throws `not_a_directory` naming the path where something else is in the way, `forbidden`, or the system's error.
   */
  async directory(names: readonly BytePath[], must_exist = false): Promise<Trail> {
    if (must_exist) return this.#go(this.#targets, names, null);
    const make = (name: BytePath) => {
      try {
        mkdirSync(this.#places.at(name), MODE);
        this.#made += 1;
      } catch (failure) {
        if (!isSystemError(failure, 'EEXIST')) throw failure;
      }
    };
    return this.#go(this.#places, names, make);
  }

  /** Goes to the directory of these names, which something was made in last; otherwise like `directory`. */
  back(names: readonly BytePath[]): Promise<Trail> {
    return this.#go(this.#places, names, null);
  }

  async #go(
    trail: Trail,
    names: readonly BytePath[],
    onMissing: ((name: BytePath) => void) | null,
  ): Promise<Trail> {
    try {
      await trail.go(names, onMissing, this.#signal);
      return trail;
    } catch (error) {
      if (!isSystemError(error, 'ENOTDIR', 'ELOOP')) throw error;
      const path = shownBytes(joined(trail.real, names[trail.depth] ?? '')).text;
      throw new ApiError('not_a_directory', `${path} is not a directory.`, { path });
    }
  }

  /**
   * Whether a link in a directory of these names stays inside, when the kernel follows it: name by name, through the links
   * that are there, where `..` is above the directory really reached. What is missing counts as a directory that somebody
   * may yet make. Links beyond those that the kernel follows lead out.
   */
  async holds(names: readonly BytePath[], target: BytePath): Promise<boolean> {
    this.#steps_left += STEPS_PER_LINK;
    const at = [...names];
    /** How many of these are directories; what follows is missing. */
    let real = at.length;
    const rest: Rest[] = [];
    let links = 0;
    const follow = (link: BytePath): boolean => {
      const inner = link.startsWith('/') ? this.#belowTop(link) : link;
      if (inner === null || ++links > LINKS_FOLLOWED_MAX) return false;
      if (link.startsWith('/')) {
        at.length = 0;
        real = 0;
      }
      rest.push({ names: inner.split('/'), next: 0 });
      return true;
    };
    if (!follow(target)) return false;
    for (;;) {
      const last = rest.at(-1);
      if (last === undefined) return true;
      const name = last.names[last.next++];
      if (name === undefined) rest.pop();
      else if (name === '..') {
        if (at.pop() === undefined) return false;
        real = Math.min(real, at.length);
      } else if (name !== '' && name !== '.') {
        const found = real === at.length ? await this.#look(at, name) : null;
        if (typeof found === 'string') {
          if (!follow(found)) return false;
        } else {
          at.push(name);
          if (found?.is_directory) real = at.length;
        }
      }
    }
  }

  /** Closes the directories that are open. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#places[Symbol.asyncDispose]();
    await this.#targets[Symbol.asyncDispose]();
  }

  /** An absolute path relative to the top; null for one that does not begin with it. */
  #belowTop(path: BytePath): BytePath | null {
    const plain = path.replace(/\/(?:\.?\/)+/g, '/');
    return below(this.#top.real, plain) ?? (plain === `${this.#top.real}/` ? '' : null);
  }

  /** The target of a link, or what else is there; null where nothing is. */
  async #look(
    names: readonly BytePath[],
    name: BytePath,
  ): Promise<BytePath | { is_directory: boolean } | null> {
    if (--this.#steps_left < 0) {
      throw new ApiError('invalid_request', 'The links of the archive lead through too many others.', {
        field: 'body',
      });
    }
    try {
      await this.#targets.go(names, null);
      const stat = await this.#targets.look(name);
      if (stat?.isSymbolicLink()) return readlinkSync(this.#targets.at(name), 'latin1');
      return stat && { is_directory: stat.isDirectory() };
    } catch (error) {
      // Somebody has changed it meanwhile, or may not be asked: as if it were missing.
      if (isSystemError(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL', 'EACCES', 'ENAMETOOLONG')) return null;
      throw error;
    }
  }
}

/** What is left of a path on the way of a link. */
interface Rest {
  names: BytePath[];
  next: number;
}

/** The names of an entry. Throws `invalid_request` (body) for one that leads out, or bears the name of an upload. */
export function namesOf(name: BytePath): BytePath[] {
  if (name.includes('\0')) throw invalidEntry(name, 'has a name with NUL');
  if (name.startsWith('/')) throw invalidEntry(name, 'has an absolute name');
  const names = name.split('/').filter((each) => each !== '' && each !== '.');
  if (names.includes('..')) throw invalidEntry(name, 'leads out of the directory');
  if (names.some(isTemporaryName)) throw invalidEntry(name, IS_TEMPORARY);
  if (names.length > FILE_DEPTH_MAX) throw invalidEntry(name, `is more than ${FILE_DEPTH_MAX} levels deep`);
  return names;
}

/** Whether names begin with those of a directory. */
export function isIn(names: readonly BytePath[], directory: readonly BytePath[]): boolean {
  if (names.length < directory.length) return false;
  for (let i = directory.length; i-- > 0; ) if (names[i] !== directory[i]) return false;
  return true;
}
