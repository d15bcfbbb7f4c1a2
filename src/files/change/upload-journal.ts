import { lstat, readdir, readlink, rm, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { kernelRandom } from '../../base/entropy.ts';
import { makeFolder } from '../../base/folder.ts';
import { isTemporaryName, temporaryName } from '../../contract/temporary-file.ts';
import { type BytePath, joined, systemPath } from '../byte-path.ts';
import { Directory } from '../directory.ts';
import { isSystemError } from '../file-error.ts';
import { OwnPlaces } from '../own-places.ts';
import { removeTree } from './remove.ts';

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
    const id = kernelRandom(12).toString('hex');
    const name = temporaryName(id);
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
 * Removes what uploads of an earlier daemon have left: in `folder` are the journals and sockets of all accounts. Nothing
 * but temporary names is ever removed, whatever a journal says.
 */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (name.endsWith('.sock')) await rm(path, { force: true });
    else if ((await lstat(path)).isDirectory()) await emptyJournal(path);
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
