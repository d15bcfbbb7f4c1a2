import { readlinkSync, unlinkSync } from 'node:fs';
import { ARCHIVE_LINKS_MAX } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import type { BytePath } from '../byte-path.ts';
import { invalidEntry } from './archive-error.ts';
import type { Inside } from './inside.ts';

/** How often links are looked at again at the end; then all of them go. */
const TURNS_MAX = 8;

/** The symbolic links that were made, which must not lead out in the end either. */
export class MadeLinks {
  readonly #inside: Inside;
  /** Their paths below the top. */
  readonly #links = new Set<BytePath>();

  constructor(inside: Inside) {
    this.#inside = inside;
  }

  /** Throws `invalid_request` for one beyond the bound. */
  checkRoom(name: BytePath): void {
    checkRoom(this.#links, name);
  }

  add(path: BytePath): void {
    this.#links.add(path);
  }

  /**
   * Removes the links that lead out by now: entries that came later have changed what they mean, and the removal of one
   * changes others again. Returns the path of one; null if all stay inside.
   */
  async removeOut(onLost: (path: BytePath) => void): Promise<BytePath | null> {
    let first: BytePath | null = null;
    for (let turn = 1; this.#links.size > 0; turn++) {
      let is_changed = false;
      for (const path of this.#links) {
        if (turn <= TURNS_MAX && (await this.#staysInside(path))) continue;
        await this.#removeLink(path);
        onLost(path);
        first ??= path;
        is_changed = true;
      }
      if (!is_changed) break;
    }
    return first;
  }

  async #staysInside(path: BytePath): Promise<boolean> {
    const names = path.split('/');
    const name = names.pop() as BytePath;
    try {
      const directory = await this.#inside.directory(names, true);
      const stat = await directory.look(name);
      if (!stat?.isSymbolicLink()) return true;
      return await this.#inside.holds(names, readlinkSync(directory.at(name), 'latin1'));
    } catch (error) {
      // Where nobody can go, no link is; one that takes too many steps is none to keep.
      return error instanceof ApiError ? error.code === 'not_a_directory' : true;
    }
  }

  async #removeLink(path: BytePath): Promise<void> {
    this.#links.delete(path);
    const names = path.split('/');
    const name = names.pop() as BytePath;
    const directory = await this.#inside.directory(names, true);
    if ((await directory.look(name))?.isSymbolicLink()) unlinkSync(directory.at(name));
  }
}

/** Throws `invalid_request` for an entry that is to be remembered beyond the bound. */
export function checkRoom({ size }: { size: number }, name: BytePath): void {
  if (size < ARCHIVE_LINKS_MAX) return;
  throw invalidEntry(
    name,
    `is beyond the ${ARCHIVE_LINKS_MAX} links, or directories without write permission`,
  );
}
