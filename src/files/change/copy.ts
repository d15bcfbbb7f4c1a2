import { constants } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, readdir, readlink, symlink } from 'node:fs/promises';
import { ApiError } from '../../contract/errors.ts';
import { isTemporaryName } from '../../contract/temporary-file.ts';
import { type BytePath, joined, shownBytes } from '../byte-path.ts';
import { Directory } from '../directory.ts';
import { conflictAt, isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { type NamedIn, putInPlace } from './put-in-place.ts';
import { removeTree } from './remove.ts';
import { findTwoPlaces, type TwoPaths } from './two-places.ts';
import type { UploadJournal } from './upload-journal.ts';
import { NEW_FILE } from './write.ts';

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_NOFOLLOW;
const CHUNK_BYTES = 1024 * 1024;
const ZEROS = Buffer.alloc(CHUNK_BYTES);
const PERMISSIONS = 0o777;
/** Each level holds two descriptors. */
const DEPTH_MAX = 200;

/** What copying uses. */
export interface CopyParts {
  own: OwnPlaces;
  journal: UploadJournal;
}

/**
 * Copies a file or a whole tree, all or nothing: it is made beside its place and then moved there. Links in a tree are
 * copied as links. Throws what finding the places does, `not_a_file` naming what cannot be copied, or the system's error.
 */
export async function copyPath(paths: TwoPaths, parts: CopyParts): Promise<void> {
  await using places = await findTwoPlaces(paths, parts.own, { follow: true });
  const { from, to, is_directory } = places;
  await copyInPlace(from, to, { ...paths, is_directory }, parts);
}

/** Copies a name beside its new place, and moves the copy there. */
export async function copyInPlace(
  from: NamedIn,
  to: NamedIn,
  options: { overwrite: boolean; is_directory: boolean; signal: AbortSignal },
  { own, journal }: CopyParts,
): Promise<void> {
  const temporary = await journal.temporaryIn(to.directory);
  const copy = { directory: to.directory, name: temporary.name };
  try {
    await copyTree(from, copy, own, options.signal, 0);
    await putInPlace(copy, to, options);
    await to.directory.sync();
  } finally {
    await removeTree(copy.directory, copy.name, own);
    await temporary.forget();
  }
}

async function copyTree(
  from: NamedIn,
  to: NamedIn,
  own: OwnPlaces,
  signal: AbortSignal,
  depth: number,
): Promise<void> {
  signal.throwIfAborted();
  const real = joined(from.directory.real, from.name === '.' ? '' : from.name);
  if (depth === DEPTH_MAX) throw conflictAt(real, 'is nested too deep');
  const stat = await from.directory.look(from.name);
  if (!stat) return;
  if (stat.isSymbolicLink()) {
    await symlink(await readlink(from.directory.at(from.name), 'buffer'), to.directory.at(to.name));
  } else if (stat.isDirectory()) {
    await copyDirectory(from, to, own, signal, depth);
  } else if (stat.isFile()) {
    await copyFile(from, to, own, signal);
  } else throw notAFile(real);
}

async function copyDirectory(
  from: NamedIn,
  to: NamedIn,
  own: OwnPlaces,
  signal: AbortSignal,
  depth: number,
): Promise<void> {
  await using source = await Directory.open(from.directory.at(from.name), own, true);
  await mkdir(to.directory.at(to.name), 0o700);
  await using target = await Directory.open(to.directory.at(to.name), own, true);
  const hidden = await own.hides(source.real);
  for (const name of await readdir(source.at(), 'latin1')) {
    if (isTemporaryName(name) || hidden(name)) continue;
    await copyTree({ directory: source, name }, { directory: target, name }, own, signal, depth + 1);
  }
  await chmod(target.at(), source.stat.mode & PERMISSIONS);
}

async function copyFile(from: NamedIn, to: NamedIn, own: OwnPlaces, signal: AbortSignal): Promise<void> {
  await using source = await open(from.directory.at(from.name), READ);
  const stat = await source.stat();
  if (!stat.isFile()) throw notAFile(joined(from.directory.real, from.name));
  await own.checkNames(stat);
  await using target = await open(to.directory.at(to.name), NEW_FILE, 0o600);
  await copyBytes(source, target, signal);
  await target.chmod(stat.mode & PERMISSIONS);
  await target.sync();
}

/** What is zero throughout takes no space, so that sparse files stay small. */
async function copyBytes(source: FileHandle, target: FileHandle, signal: AbortSignal): Promise<void> {
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let position = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead: length } = await source.read(chunk, 0, CHUNK_BYTES, position).catch((error) => {
      if (!isSystemError(error, 'EAGAIN')) throw error;
      return { bytesRead: 0 };
    });
    if (length === 0) break;
    const is_zero = chunk.compare(ZEROS, 0, length, 0, length) === 0;
    if (!is_zero) await writeAll(target, chunk.subarray(0, length), position);
    position += length;
  }
  await target.truncate(position);
}

/** Writes all of `data` at a position of a file; the kernel may take it in parts. */
async function writeAll(file: FileHandle, data: Buffer, position: number): Promise<void> {
  for (let done = 0; done < data.length; ) {
    done += (await file.write(data, done, data.length - done, position + done)).bytesWritten;
  }
}

function notAFile(real: BytePath): ApiError {
  return new ApiError('not_a_file', undefined, { path: shownBytes(real).text });
}
