import { mkdir, stat } from 'node:fs/promises';
import { ApiError } from '../../contract/errors.ts';
import type { BytePath } from '../byte-path.ts';
import { Directory } from '../directory.ts';
import { isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { checkNewName, findPlace } from '../place.ts';

const MODE = 0o755;

/** A directory to make. */
export interface MakeRequest {
  path: BytePath;
  /** Makes those above it too, and takes one that is there. */
  recursive: boolean;
  /** Of the last one; null for 0755. */
  mode: number | null;
}

/** Makes a directory; returns false where it was there. Throws `already_exists`, `forbidden` or the system's error. */
export async function makeDirectory(
  { path, recursive, mode }: MakeRequest,
  own: OwnPlaces,
): Promise<boolean> {
  // A slash at its end says nothing about a directory that is made.
  const bare = path.replace(/(.)\/+$/, '$1');
  const place = await findPlace(bare, own, { follow: false, parents: recursive });
  await using directory = place.directory;
  checkNewName(place);
  const { name, missing } = place;
  if (place.stat) {
    const is_directory = recursive && (await stat(directory.at(name)).catch(() => null))?.isDirectory();
    if (!is_directory) throw new ApiError('already_exists');
    return false;
  }
  await using parent = await makeDirectories(directory, missing, own);
  await mkdir(parent.at(name), mode ?? MODE);
  await parent.sync();
  return true;
}

/** Makes directories one in the other; returns the last one, open, which is `directory` again where there are none. */
export async function makeDirectories(
  directory: Directory,
  names: readonly BytePath[],
  own: OwnPlaces,
  signal?: AbortSignal,
): Promise<Directory> {
  let last = await Directory.open(directory.at(), own);
  for (const name of names) {
    await using above = last;
    signal?.throwIfAborted();
    await mkdir(above.at(name), MODE).catch((error) => {
      // Somebody else may have made it meanwhile.
      if (!isSystemError(error, 'EEXIST')) throw error;
    });
    await above.sync();
    last = await entered(above, name, own);
  }
  return last;
}

/** Another one than was made may be a link, which leads anywhere. */
async function entered(above: Directory, name: BytePath, own: OwnPlaces): Promise<Directory> {
  return above.enter(name, own).catch((error) => {
    if (isSystemError(error, 'ENOTDIR', 'ELOOP')) return Directory.open(above.at(name), own);
    throw error;
  });
}
