import type { Stats } from 'node:fs';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { type BytePath, below, joined } from '../byte-path.ts';
import { withPath } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { checkNewName, findPlace, isDirectoryPath, type Place } from '../place.ts';
import type { NamedIn } from './put-in-place.ts';

/** Two paths: where something is, and where it is to be. */
export interface TwoPaths {
  source: BytePath;
  destination: BytePath;
  /** Whether it may take the place of something else. */
  overwrite: boolean;
  signal: AbortSignal;
}

/** The places of two paths, which are closed together. */
export interface TwoPlaces extends AsyncDisposable {
  from: Place & { stat: Stats };
  to: Place;
  is_directory: boolean;
}

/**
 * Finds the places of a move or copy. Throws `not_found`, `already_exists`, `is_a_directory` or `not_a_directory` where
 * one cannot take the place of the other, `invalid_request` for a destination in its source, `forbidden`, or the system's
 * error.
 */
export async function findTwoPlaces(
  { source, destination, overwrite }: TwoPaths,
  own: OwnPlaces,
  { follow }: { follow: { source: boolean; destination: boolean } },
): Promise<TwoPlaces> {
  const opened = new AsyncDisposableStack();
  try {
    const from = await withPath(source, () => placeOfSource(source, own, follow.source), 'source');
    opened.use(from.directory);
    const is_directory = from.stat.isDirectory();
    const to = await findPlace(destination, own, { follow: follow.destination });
    opened.use(to.directory);
    checkNewName(to, 'destination');
    if (to.stat && !overwrite) throw new ApiError('already_exists');
    checkApart(from, to);
    if (is_directory && to.stat && !to.stat.isDirectory()) throw new ApiError('not_a_directory');
    if (!is_directory && to.stat?.isDirectory()) throw new ApiError('is_a_directory');
    if (!is_directory && isDirectoryPath(destination)) throw new ApiError('not_a_directory');
    return { from, to, is_directory, [Symbol.asyncDispose]: () => opened.disposeAsync() };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function placeOfSource(
  path: BytePath,
  own: OwnPlaces,
  follow: boolean,
): Promise<Place & { stat: Stats }> {
  const place = await findPlace(path, own, { follow });
  const { stat } = place;
  if (stat) return { ...place, stat };
  await place.directory.close();
  throw new ApiError('not_found');
}

function checkApart(from: NamedIn, to: NamedIn): void {
  const source = joined(from.directory.real, from.name === '.' ? '' : from.name);
  if (below(source, joined(to.directory.real, to.name)) === null) return;
  throw invalidField('destination', 'must not be the source, or inside it');
}
