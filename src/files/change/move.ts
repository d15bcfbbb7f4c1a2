import { ApiError } from '../../contract/errors.ts';
import { joined, shownBytes } from '../byte-path.ts';
import { conflictAt, isSystemError, told } from '../file-error.ts';
import { findPlace } from '../place.ts';
import { type CopyParts, checkApart, copyInPlace, type TwoPaths } from './copy.ts';
import { putInPlace } from './put-in-place.ts';
import { checkNamed, checkUnmounted, removeTree } from './remove.ts';

/**
 * Moves a file, a link itself or a directory, all or nothing; to another file system by a copy. Throws `not_found`,
 * `already_exists`, `directory_not_empty`, `conflict` at mount points, `forbidden`, or the system's error.
 */
export async function movePath(
  { source, destination, overwrite, signal }: TwoPaths,
  parts: CopyParts,
): Promise<void> {
  checkNamed(source, 'source');
  const from = await told(source, () => findPlace(source, parts.own, { follow: false }), 'source');
  await using _from = from.directory;
  if (from.name === '.') throw conflictAt('/', 'cannot be moved');
  if (!from.stat) throw new ApiError('not_found', undefined, { path: shownBytes(source).text });
  checkNamed(destination, 'destination');
  const to = await told(
    destination,
    () => findPlace(destination, parts.own, { follow: false }),
    'destination',
  );
  await using _to = to.directory;
  if (to.stat && !overwrite)
    throw new ApiError('already_exists', undefined, { path: shownBytes(destination).text });
  const is_directory = from.stat.isDirectory();
  if (is_directory) {
    const real = joined(from.directory.real, from.name);
    await parts.own.checkWhole(real, from.stat);
    await checkUnmounted(real);
    checkApart(from, to);
  }
  const options = { overwrite, is_directory, signal };
  try {
    await putInPlace(from, to, options);
  } catch (error) {
    if (!isSystemError(error, 'EXDEV')) throw error;
    await copyInPlace(from, to, options, parts);
    await removeTree(from.directory, from.name, parts.own);
  }
  await to.directory.sync();
  await from.directory.sync();
}
