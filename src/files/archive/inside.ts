import { mkdirSync } from 'node:fs';
import { ApiError } from '../../contract/errors.ts';
import { isTemporaryName } from '../../contract/temporary-file.ts';
import { type BytePath, below, joined, shownBytes } from '../byte-path.ts';
import { Directory } from '../directory.ts';
import { isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { IS_TEMPORARY } from '../place.ts';
import { invalidEntry } from './archive-entries.ts';

/** Directories that are kept open at a time. */
const OPEN_MAX = 128;
const MODE = 0o755;

/** The directories below one that an archive is unpacked into. No link is followed, so that none leads out of it. */
export class Inside {
  readonly #top: Directory;
  readonly #own: OwnPlaces;
  readonly #open = new Map<BytePath, Directory>();

  constructor(top: Directory, own: OwnPlaces) {
    this.#top = top;
    this.#own = own;
  }

  /** Whether no further directory should be opened before `close`. */
  get is_full(): boolean {
    return this.#open.size >= OPEN_MAX;
  }

  /**
   * Opens the directory of these names; missing ones are made unless `must_exist`. It stays open until `close`.
   * Throws `not_a_directory` naming the path where something else is in the way, `forbidden`, or the system's error.
   */
  async directory(names: readonly BytePath[], must_exist = false): Promise<Directory> {
    const path = names.join('/');
    if (path === '') return this.#top;
    const known = this.#open.get(path);
    if (known) return known;
    const above = await this.directory(names.slice(0, -1), must_exist);
    const name = names.at(-1) as BytePath;
    const made = await this.#enter(above, name, must_exist);
    const other = this.#open.get(path);
    if (other) {
      await made.close();
      return other;
    }
    this.#open.set(path, made);
    return made;
  }

  /** Whether the target of a link in a directory of these names stays inside. */
  holds(names: readonly BytePath[], target: BytePath): boolean {
    const from = [this.#top.real, ...names].join('/');
    return below(this.#top.real, resolved(target.startsWith('/') ? target : joined(from, target))) !== null;
  }

  /** Closes the directories that were opened. */
  async close(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(open.map((each) => each.close()));
  }

  async #enter(above: Directory, name: BytePath, must_exist: boolean): Promise<Directory> {
    const enter = () => Directory.open(above.at(name), this.#own, true);
    try {
      return await enter().catch(async (error) => {
        if (must_exist || !isSystemError(error, 'ENOENT')) throw error;
        try {
          mkdirSync(above.at(name), MODE);
        } catch (failure) {
          if (!isSystemError(failure, 'EEXIST')) throw failure;
        }
        return enter();
      });
    } catch (error) {
      if (!isSystemError(error, 'ENOTDIR', 'ELOOP')) throw error;
      const path = shownBytes(joined(above.real, name)).text;
      throw new ApiError('not_a_directory', `${path} is not a directory.`, { path });
    }
  }
}

/** The names of an entry. Throws `invalid_request` (body) for one that leads out, or bears the name of an upload. */
export function namesOf(name: BytePath): BytePath[] {
  if (name.includes('\0')) throw invalidEntry(name, 'has a name with NUL');
  if (name.startsWith('/')) throw invalidEntry(name, 'has an absolute name');
  const names = name.split('/').filter((each) => each !== '' && each !== '.');
  if (names.includes('..')) throw invalidEntry(name, 'leads out of the directory');
  if (names.some(isTemporaryName)) throw invalidEntry(name, IS_TEMPORARY);
  return names;
}

function resolved(path: BytePath): BytePath {
  const names: BytePath[] = [];
  for (const name of path.split('/')) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return `/${names.join('/')}`;
}
