import { lstatSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { readdir, readlink, rm, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { kernelRandom } from '../../base/entropy.ts';
import { makeFolder } from '../../base/folder.ts';
import { isTemporaryName, temporaryName } from '../../contract/temporary-file.ts';
import { type BytePath, joined, systemPath } from '../byte-path.ts';
import { Directory } from '../directory.ts';
import { isSystemError } from '../file-error.ts';
import { OwnPlaces } from '../own-places.ts';
import { newTemporary } from './new-temporary.ts';
import { removeTree } from './remove.ts';

/** The beginning of the names of journals in use, and of those that an earlier daemon has left. */
const [JOURNAL, LEFT] = ['uploads', 'left-'];

/** A temporary name in a directory, which the journal knows. */
export interface Temporary {
  name: BytePath;
  /** To be called once there is nothing under this name any more. */
  forget(): Promise<void>;
}

/**
 * The temporary names in use, so that what a killed daemon leaves is found again wherever it is: a link for each, to the
 * temporary file. A link is made in one step, and before the file. Source: contract section 4, "Files".
 */
export class UploadJournal {
  readonly #folder: string;
  #directory: Promise<Directory> | null = null;

  /** `folder` is the journal's own; it is made when it is first needed. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Opens the folder now, while this process may. */
  async open(): Promise<void> {
    await this.#opened();
  }

  /** Its folder as any thread of this process reaches it, as long as it is open. */
  async address(): Promise<string> {
    return String((await this.#opened()).at());
  }

  /** Closes the folder; it is opened again when it is needed. Idempotent. */
  async close(): Promise<void> {
    const opened = this.#directory;
    this.#directory = null;
    await (await opened?.catch(() => null))?.close();
  }

  /** A new temporary name for a directory. */
  async temporaryIn(directory: Directory): Promise<Temporary> {
    const { id, name } = newTemporary();
    const journal = await this.#opened();
    await symlink(systemPath(joined(directory.real, name)), journal.at(id));
    return {
      name,
      forget: async () => {
        await unlink(journal.at(id)).catch((error) => {
          if (!isSystemError(error, 'ENOENT')) throw error;
        });
      },
    };
  }

  #opened(): Promise<Directory> {
    this.#directory ??= makeFolder(this.#folder).then(() => Directory.open(this.#folder, new OwnPlaces([])));
    this.#directory.catch(() => {
      this.#directory = null;
    });
    return this.#directory;
  }
}

/**
 * Sets the journals of an earlier daemon aside, which are all accounts', and removes its sockets; returns whether there is
 * anything for `removeLeftovers`. Nothing outside of `folder` is touched.
 */
export function setLeftoversAside(folder: string): boolean {
  const names = readdirSync(folder);
  for (const name of names.filter((each) => each.endsWith('.sock')))
    rmSync(join(folder, name), { force: true });
  const journals = names.filter((each) => each.startsWith(JOURNAL) && hasEntries(join(folder, each)));
  for (const name of journals)
    renameSync(join(folder, name), join(folder, LEFT + kernelRandom(6).toString('hex')));
  return journals.length > 0 || names.some((each) => each.startsWith(LEFT));
}

function hasEntries(folder: string): boolean {
  return lstatSync(folder).isDirectory() && readdirSync(folder).length > 0;
}

/**
 * Removes what uploads of an earlier daemon have left, by its journals that were set aside in `folder`. Nothing but
 * temporary names is ever removed, whatever a journal says.
 */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(LEFT)) continue;
    await emptyJournal(join(folder, name));
    await rm(join(folder, name), { force: true, recursive: true });
  }
}

async function emptyJournal(journal: string): Promise<void> {
  for (const id of await readdir(journal)) {
    const path = await readlink(join(journal, id), 'latin1').catch(() => '');
    const cut = path.lastIndexOf('/');
    const name = path.slice(cut + 1);
    if (cut >= 0 && isTemporaryName(name) && name === temporaryName(id)) {
      await removeLeftover(path.slice(0, cut) || '/', name);
    }
    await rm(join(journal, id), { force: true, recursive: true });
  }
}

/** One that cannot be removed, for example because its disk is gone, stays. */
async function removeLeftover(directory_path: BytePath, name: BytePath): Promise<void> {
  const own = new OwnPlaces([]);
  try {
    await using directory = await Directory.open(systemPath(directory_path), own);
    await removeTree(directory, name, own);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
}
