import { type BytePath, systemPath } from '../byte-path.ts';
import { Directory } from '../directory.ts';
import { conflictAt, isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { openRegularFile } from '../regular-file.ts';
import { Pack } from './pack.ts';

/** A tar stream of a directory's tree, or of one file under its own name. Throws `not_a_file`, `conflict` or the system's error. */
export async function packPath(
  path: BytePath,
  own: OwnPlaces,
  signal: AbortSignal,
): Promise<AsyncGenerator<Buffer, void>> {
  try {
    const directory = await Directory.open(systemPath(path), own);
    return await Pack.ofDirectory(directory, own, signal);
  } catch (error) {
    if (!isSystemError(error, 'ENOTDIR')) throw error;
  }
  const { handle, is_pseudo } = await openRegularFile(systemPath(path), own);
  if (is_pseudo) {
    await handle.close();
    throw conflictAt(path, 'has no length before it is read, which an archive needs');
  }
  return Pack.ofFile(handle, path.slice(path.lastIndexOf('/') + 1), own, signal);
}
