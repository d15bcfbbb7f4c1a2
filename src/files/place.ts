import type { Stats } from 'node:fs';
import { readlink } from 'node:fs/promises';
import { FILE_DEPTH_MAX, LINKS_FOLLOWED_MAX } from '../contract/defaults.ts';
import { invalidField } from '../contract/errors.ts';
import { isTemporaryName, TEMPORARY_PATTERN } from '../contract/temporary-file.ts';
import { type BytePath, joined, systemPath } from './byte-path.ts';
import { Directory } from './directory.ts';
import { isSystemError } from './file-error.ts';
import type { OwnPlaces } from './own-places.ts';

const STICKY_AND_WRITABLE = 0o1002;

/** A name in an open directory: what a path stands for. */
export interface Place {
  directory: Directory;
  /** Directories that are missing between `directory` and the name; empty unless they were allowed to be. */
  missing: BytePath[];
  /** `.` for the root directory. */
  name: BytePath;
  /** What is there, without following a link; null for nothing. */
  stat: Stats | null;
}

/** How a path is resolved. */
export interface PlaceOptions {
  /** Whether a link at its end is followed, also to something that is missing. */
  follow: boolean;
  /** Whether directories above may be missing. */
  parents?: boolean;
}

/**
 * Finds the place of a path, as the kernel does: each link is followed where it stands. The caller closes the directory.
 * Throws the system's error, or `forbidden`.
 */
export async function findPlace(path: BytePath, own: OwnPlaces, options: PlaceOptions): Promise<Place> {
  let base: Directory | null = null;
  let rest = path;
  for (let links = 0; links <= LINKS_FOLLOWED_MAX; links++) {
    const place: Place = await placeIn(base, rest, own, options.parents ?? false).finally(() =>
      base?.close(),
    );
    try {
      const { directory, name, stat } = place;
      if (!options.follow || !stat?.isSymbolicLink()) {
        if (stat?.isSymbolicLink() && isDirectoryPath(rest)) throw systemError('ENOTDIR');
        await own.check(joined(directory.real, name === '.' ? '' : name), stat);
        return place;
      }
      checkFollowed(directory.stat, stat);
      const target = await readlink(directory.at(name), 'latin1');
      rest = isDirectoryPath(rest) ? `${target}/` : target;
      base = directory;
    } catch (error) {
      await place.directory.close();
      throw error;
    }
  }
  await base?.close();
  throw systemError('ELOOP');
}

/** Whether a path says that it leads to a directory, by a slash at its end. */
export function isDirectoryPath(path: BytePath): boolean {
  return /\/\.?$/.test(path);
}

/**
 * Throws `invalid_request` for a place that is, or lies in, what bears the name of an upload under way: lists and watches
 * leave such names out, so that nothing else may hide behind one.
 */
export function checkNewName({ directory, missing, name }: Place, field = 'path'): void {
  const names = [...directory.real.split('/'), ...missing, name];
  if (names.some(isTemporaryName)) throw invalidField(field, IS_TEMPORARY);
}

const TOO_DEEP = `must not have more than ${FILE_DEPTH_MAX} missing directories`;

/** What is wrong with such a name. */
export const IS_TEMPORARY = `must not contain a name like ${TEMPORARY_PATTERN}, which uploads under way have`;

/** A link that somebody else has put into a directory for all, such as /tmp, is not followed, as the kernel does. */
function checkFollowed(directory: Stats, link: Stats): void {
  const is_shared = (directory.mode & STICKY_AND_WRITABLE) === STICKY_AND_WRITABLE;
  if (is_shared && link.uid !== directory.uid && link.uid !== process.geteuid?.())
    throw systemError('EACCES');
}

async function placeIn(
  base: Directory | null,
  path: BytePath,
  own: OwnPlaces,
  parents: boolean,
): Promise<Place> {
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  const name = names.pop();
  const must_be_directory = isDirectoryPath(path);
  if (name === undefined || name === '..') return placeOfDirectory(systemBelow(base, path), own);
  const start = path.startsWith('/') ? '/' : '';
  const missing: BytePath[] = [];
  for (;;) {
    const above = start + names.join('/');
    try {
      const directory = await Directory.open(systemBelow(base, above), own);
      try {
        const stat = missing.length > 0 ? null : await directory.look(name);
        if (must_be_directory && stat && !stat.isDirectory() && !stat.isSymbolicLink()) {
          throw systemError('ENOTDIR');
        }
        return { directory, missing: missing.reverse(), name, stat };
      } catch (error) {
        await directory.close();
        throw error;
      }
    } catch (error) {
      const last = names.at(-1);
      const may_be_missing = parents && isSystemError(error, 'ENOENT') && last !== undefined && last !== '..';
      if (!may_be_missing) throw error;
      if (missing.length === FILE_DEPTH_MAX) throw invalidField('path', TOO_DEEP);
      missing.push(last);
      names.pop();
    }
  }
}

/** The place of a directory that was named without its own name, as in `/` and `/a/..`. */
async function placeOfDirectory(path: string | Buffer, own: OwnPlaces): Promise<Place> {
  await using found = await Directory.open(path, own);
  const cut = found.real.lastIndexOf('/');
  const name = found.real.slice(cut + 1);
  const directory = await Directory.open(systemPath(found.real.slice(0, cut) || '/'), own);
  return { directory, missing: [], name: name || '.', stat: found.stat };
}

function systemBelow(base: Directory | null, path: BytePath): string | Buffer {
  if (path.startsWith('/') || base === null) return systemPath(path || '.');
  return path === '' ? base.at() : base.at(path);
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code });
}
