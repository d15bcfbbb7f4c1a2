import { constants, type Stats } from 'node:fs';
import { access, chmod, type FileHandle, mkdir, open, readdir, readlink, symlink } from 'node:fs/promises';
import { FILE_DEPTH_MAX } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { isTemporaryName } from '../../contract/temporary-file.ts';
import { type BytePath, joined, shownBytes } from '../byte-path.ts';
import type { Directory } from '../directory.ts';
import { conflictAt, isSystemError } from '../file-error.ts';
import { MODE_BITS, SET_IDS } from '../mode.ts';
import type { OwnPlaces } from '../own-places.ts';
import { checkRegular } from '../regular-file.ts';
import { Trail } from '../trail.ts';
import type { NameLocks } from './name-locks.ts';
import { type NamedIn, putInPlace } from './put-in-place.ts';
import { removeTree } from './remove.ts';
import { findTwoPlaces, type TwoPaths } from './two-places.ts';
import type { UploadJournal } from './upload-journal.ts';
import { keepOwner, NEW_FILE } from './write.ts';

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_NOFOLLOW;
const CHUNK_BYTES = 1024 * 1024;
const ZEROS = Buffer.alloc(CHUNK_BYTES);

/** What copying uses. */
export interface CopyParts {
  own: OwnPlaces;
  journal: UploadJournal;
  locks: NameLocks;
}

/**
 * Copies a file or a whole tree, all or nothing: it is made beside its place and then moved there. Links in a tree are
 * copied as links; where something may be replaced, the place is where a link leads. A file that is replaced keeps mode
 * and owner, as of an upload. Throws what finding the places does, `not_a_file` naming what cannot be copied, or of the
 * place, `permission_denied`, or the system's error.
 */
export async function copyPath(paths: TwoPaths, parts: CopyParts): Promise<void> {
  const follow = { source: true, destination: paths.overwrite };
  await using places = await findTwoPlaces(paths, parts.own, { follow });
  const { from, to, is_directory } = places;
  const replaced = is_directory ? null : to.stat;
  if (replaced) {
    checkRegular(replaced);
    await access(to.directory.at(to.name), constants.W_OK);
  }
  await copyInPlace(from, to, { ...paths, is_directory, replaced }, parts);
}

/** How a name is copied. */
interface CopyOptions {
  overwrite: boolean;
  is_directory: boolean;
  /** The file whose mode and owner the copy gets; null: its own. */
  replaced: Stats | null;
  signal: AbortSignal;
}

/** Copies a name beside its new place, and moves the copy there. */
export async function copyInPlace(
  from: NamedIn,
  to: NamedIn,
  options: CopyOptions,
  { own, journal, locks }: CopyParts,
): Promise<void> {
  const temporary = await journal.temporaryIn(to.directory);
  const copy = { directory: to.directory, name: temporary.name };
  try {
    await using copying = new Copying(from.directory, to.directory, own, options.signal);
    await copying.copy(from.name, copy.name, options.replaced);
    {
      using _ = await locks.hold([to], options.signal);
      await putInPlace(copy, to, options);
    }
    await to.directory.sync();
  } finally {
    await removeTree(copy.directory, copy.name, own);
    await temporary.forget();
  }
}

/** Two ways that go down together. */
class Copying implements AsyncDisposable {
  readonly #from: Trail;
  readonly #to: Trail;
  readonly #own: OwnPlaces;
  readonly #signal: AbortSignal;

  constructor(from: Directory, to: Directory, own: OwnPlaces, signal: AbortSignal) {
    this.#from = new Trail(from, own);
    this.#to = new Trail(to, own);
    this.#own = own;
    this.#signal = signal;
  }

  /** Copies a name of the one directory to a name of the other; of a file, `replaced` as of the whole copy. */
  async copy(name: BytePath, new_name: BytePath, replaced: Stats | null = null): Promise<void> {
    this.#signal.throwIfAborted();
    const stat = await this.#from.look(name);
    if (!stat) return;
    if (stat.isSymbolicLink()) {
      await symlink(await readlink(this.#from.at(name), 'buffer'), this.#to.at(new_name));
    } else if (stat.isDirectory()) await this.#copyDirectory(name, new_name);
    else if (stat.isFile()) await this.#copyFile(name, new_name, replaced);
    else throw notAFile(this.#real(name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#from[Symbol.asyncDispose]();
    await this.#to[Symbol.asyncDispose]();
  }

  async #copyDirectory(name: BytePath, new_name: BytePath): Promise<void> {
    const [from, to] = [this.#from, this.#to];
    const depth = from.depth;
    if (depth > FILE_DEPTH_MAX) throw conflictAt(this.#real(name), 'is nested too deep');
    await from.enter(name);
    await mkdir(to.at(new_name), 0o700);
    await to.enter(new_name);
    const { mode } = from.stat;
    const hidden = await this.#own.hides(from.real);
    for (const each of await readdir(from.at(), 'latin1')) {
      if (!isTemporaryName(each) && !hidden(each)) await this.copy(each, each);
    }
    await from.leave();
    await chmod(to.at(), mode & MODE_BITS);
    await to.leave();
    if (from.depth !== depth || to.depth !== depth)
      throw conflictAt(this.#real(name), 'was moved while it was copied');
  }

  async #copyFile(name: BytePath, new_name: BytePath, replaced: Stats | null): Promise<void> {
    await using source = await open(this.#from.at(name), READ);
    const stat = await source.stat();
    if (!stat.isFile()) throw notAFile(this.#real(name));
    await this.#own.checkNames(stat);
    await using target = await open(this.#to.at(new_name), NEW_FILE, 0o600);
    await copyBytes(source, target, this.#signal);
    if (replaced) await keepOwner(target, replaced, null);
    else await target.chmod(modeOfCopy(stat, await target.stat()));
    await target.sync();
  }

  #real(name: BytePath): BytePath {
    return joined(this.#from.real, name === '.' ? '' : name);
  }
}

/** A program that runs as its owner or group must not run as another one that its copy belongs to. */
function modeOfCopy(from: Stats, { uid, gid }: Stats): number {
  const mode = from.mode & MODE_BITS;
  return from.uid === uid && from.gid === gid ? mode : mode & ~SET_IDS;
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
