import { joined } from '../byte-path.ts';
import { conflictAt, isSystemError } from '../file-error.ts';
import { type CopyParts, copyInPlace } from './copy.ts';
import { putInPlace } from './put-in-place.ts';
import { checkNamed, checkUnmounted, removeTree } from './remove.ts';
import { findTwoPlaces, type TwoPaths } from './two-places.ts';

/**
 * Moves a file, a link itself or a directory, all or nothing; to another file system by a copy. Throws what finding the
 * places does, `directory_not_empty`, `conflict` at mount points, or the system's error.
 */
export async function movePath(paths: TwoPaths, parts: CopyParts): Promise<void> {
  checkNamed(paths.source, 'source');
  checkNamed(paths.destination, 'destination');
  await using places = await findTwoPlaces(paths, parts.own, {
    follow: { source: false, destination: false },
  });
  const { from, to, is_directory } = places;
  if (from.name === '.') throw conflictAt('/', 'cannot be moved');
  if (is_directory) {
    const real = joined(from.directory.real, from.name);
    await parts.own.checkWhole(real, from.stat);
    await checkUnmounted(real);
  }
  const options = { ...paths, is_directory };
  try {
    using _ = await parts.locks.hold([from, to], paths.signal);
    await putInPlace(from, to, options);
  } catch (error) {
    if (!isSystemError(error, 'EXDEV')) throw error;
    await copyInPlace(from, to, { ...options, replaced: null }, parts);
    await removeTree(from.directory, from.name, parts.own);
  }
  await to.directory.sync();
  await from.directory.sync();
}
