import { constants, type Stats } from 'node:fs';
import { access, type FileHandle, open, unlink } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';
import type { BytePath } from '../byte-path.ts';
import { O_PATH } from '../calls.ts';
import { checkConditions, hasConditions, type Version, type WriteConditions } from '../conditions.ts';
import type { Directory } from '../directory.ts';
import { isSystemError } from '../file-error.ts';
import { MODE_BITS } from '../mode.ts';
import type { OwnPlaces } from '../own-places.ts';
import { checkNewName, findPlace, isDirectoryPath, type Place } from '../place.ts';
import { checkRegular } from '../regular-file.ts';
import { entityTag } from '../stamp.ts';
import { makeDirectories } from './make-directory.ts';
import type { NameLocks } from './name-locks.ts';
import { putInPlace } from './put-in-place.ts';
import { storeStream } from './store-stream.ts';
import type { UploadJournal } from './upload-journal.ts';

/** A file of this request's own. */
export const NEW_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

const MODE = 0o644;

/** A file to write. */
export interface WriteRequest {
  path: BytePath;
  /** Null: that of the file in its place, or 0644. */
  mode: number | null;
  /** Whether missing directories above it are made. */
  parents: boolean;
  conditions: WriteConditions;
  data: Readable;
  signal: AbortSignal;
}

/** What was written. */
export interface WriteResult {
  size: number;
  etag: string;
}

/** What writing uses. */
export interface WriteParts {
  own: OwnPlaces;
  journal: UploadJournal;
  locks: NameLocks;
  clock: Clock;
}

/**
 * Writes a file beside its place, syncs it and moves it there: readers see the old or the new one, also after a power cut.
 * What fails leaves nothing, and no directory that was made for it. Throws `precondition_failed`, `is_a_directory`,
 * `not_a_file`, `permission_denied`, `forbidden`, or the system's error.
 */
export async function writeFile(request: WriteRequest, parts: WriteParts): Promise<WriteResult> {
  const { path, parents, conditions } = request;
  if (isDirectoryPath(path)) throw new ApiError('is_a_directory');
  const place = await findPlace(path, parts.own, { follow: true, parents });
  await using directory = place.directory;
  checkNewName(place);
  await checkReplaced(place, conditions, parts.clock);
  const temporary = await parts.journal.temporaryIn(directory);
  let is_placed = false;
  try {
    await using handle = await open(directory.at(temporary.name), NEW_FILE, 0o600);
    const size = await storeStream(request.data, handle, request.signal);
    await keepOwner(handle, place.stat, request.mode);
    await handle.sync();
    await commit(request, parts, place, temporary.name);
    is_placed = true;
    const { etag } = await entityTag(handle, parts.clock);
    return { size, etag };
  } finally {
    if (!is_placed) await unlink(directory.at(temporary.name)).catch(unlessGone);
    await temporary.forget();
  }
}

/** Throws unless the request may replace what is at the place now. */
async function checkReplaced(place: Place, conditions: WriteConditions, clock: Clock): Promise<void> {
  const { directory, name } = place;
  if (name === '.') throw new ApiError('is_a_directory');
  const stat = place.missing.length > 0 ? null : await directory.look(name);
  if (stat && !stat.isSymbolicLink()) checkRegular(stat);
  if (hasConditions(conditions))
    checkConditions(conditions, stat && (await versionOf(directory, name, clock)));
  // A rename asks only for rights to the directory, but what it replaces may be read-only.
  if (stat?.isFile()) await access(directory.at(name), constants.W_OK);
}

async function versionOf(directory: Directory, name: BytePath, clock: Clock): Promise<Version> {
  await using handle = await open(directory.at(name), O_PATH | constants.O_NOFOLLOW);
  const { etag, stat } = await entityTag(handle, clock);
  return { etag, modified_ms: stat.mtimeMs };
}

/** Gives a new file the owner of the one that it replaces, and its mode unless another is given. Throws `permission_denied`. */
export async function keepOwner(
  handle: FileHandle,
  replaced: Stats | null,
  mode: number | null,
): Promise<void> {
  const own = await handle.stat();
  if (replaced && (replaced.uid !== own.uid || replaced.gid !== own.gid)) {
    await handle.chown(replaced.uid, replaced.gid).catch((error) => {
      if (!isSystemError(error, 'EPERM', 'EINVAL')) throw error;
      throw notItsOwner();
    });
  }
  await handle.chmod(mode ?? (replaced ? replaced.mode & MODE_BITS : MODE));
}

/** A file that would not be its owner's any more. */
export function notItsOwner(): ApiError {
  return new ApiError('permission_denied', 'The file belongs to another account, which must stay its owner.');
}

/** Checks what is replaced and replaces it, in one step for all requests. */
async function commit(
  { conditions, signal }: WriteRequest,
  { own, clock, locks }: WriteParts,
  place: Place,
  temporary: BytePath,
): Promise<void> {
  await using parent = await makeDirectories(place.directory, place.missing, own);
  const to = { directory: parent, name: place.name };
  using _ = await locks.hold([to], signal);
  await checkReplaced({ ...place, directory: parent, missing: [] }, conditions, clock);
  const options = { overwrite: !conditions.must_be_new, is_directory: false };
  await putInPlace({ directory: place.directory, name: temporary }, to, options).catch((error) => {
    if (conditions.must_be_new && isTaken(error)) throw new ApiError('precondition_failed');
    throw error;
  });
  await parent.sync();
}

function isTaken(error: unknown): boolean {
  return isSystemError(error, 'EEXIST') || (error instanceof ApiError && error.code === 'already_exists');
}

function unlessGone(error: unknown): void {
  if (!isSystemError(error, 'ENOENT')) throw error;
}
