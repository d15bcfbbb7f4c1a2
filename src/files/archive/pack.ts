import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { FILE_DEPTH_MAX } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { isTemporaryName } from '../../contract/temporary-file.ts';
import { type AccountNames, accountNames } from '../accounts.ts';
import { type BytePath, joined, shownBytes, systemPath } from '../byte-path.ts';
import type { ByteRange } from '../byte-range.ts';
import { Directory } from '../directory.ts';
import { conflictAt, FileShrunk, isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { openRegularFile } from '../regular-file.ts';
import { Trail } from '../trail.ts';
import { dataRanges, isSparse, sparseMap, sparseRecords } from './sparse.ts';
import { padding, TAR_END, type TarEntry, tarHeader } from './tar-header.ts';
import type { Loss } from './tree-copy.ts';

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_NOFOLLOW;
const CHUNK_BYTES = 256 * 1024;
/** Other names of files that are remembered; further ones become files of their own. */
const LINKS_MAX = 100_000;

/** What packing uses. */
export interface PackParts {
  own: OwnPlaces;
  signal: AbortSignal;
  copy: PackedCopy | null;
}

/** How the copy of a tree is packed, where any other archive is of files, directories and links alone. */
export interface PackedCopy {
  /** Takes what is lost; null: the archive tells it. */
  onLoss: ((loss: Loss) => void) | null;
}

/** A tar stream of a directory's tree, or of one file under its own name. Throws `not_a_file`, `conflict` or the system's error. */
export async function packPath(path: BytePath, parts: PackParts): Promise<AsyncGenerator<Buffer, void>> {
  const { own } = parts;
  try {
    const directory = await Directory.open(systemPath(path), own);
    return await Pack.ofDirectory(directory, parts);
  } catch (error) {
    if (!isSystemError(error, 'ENOTDIR')) throw error;
  }
  const { handle, is_pseudo } = await openRegularFile(systemPath(path), own);
  if (is_pseudo) {
    await handle.close();
    throw conflictAt(path, 'has no length before it is read, which an archive needs');
  }
  return Pack.ofFile(handle, path.slice(path.lastIndexOf('/') + 1), parts);
}

/**
 * Writes a directory's tree, or a single file, as a tar stream. Names are relative to the directory, links stay links, and
 * sparse files stay small. Sockets, pipes and devices are left out, and so are the daemon's own files and uploads under
 * way. What cannot be read, or becomes shorter meanwhile, breaks the stream. The copy of a tree begins with the directory
 * itself, and has its pipes; it tells of what else is left out, or cannot be read, or became longer. Calls the system at
 * once, as suits a thread of its own.
 */
export class Pack {
  readonly #own: OwnPlaces;
  readonly #signal: AbortSignal;
  readonly #copy: PackedCopy | null;
  readonly #names: AccountNames;
  readonly #first_names = new Map<string, BytePath>();
  /** What is handed over next: an entry is often smaller than a packet. */
  #chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  #filled = 0;

  private constructor({ own, signal, copy }: PackParts, names: AccountNames) {
    this.#own = own;
    this.#signal = signal;
    this.#copy = copy;
    this.#names = names;
  }

  /** The stream of a directory's tree, which is closed at its end. */
  static async ofDirectory(directory: Directory, parts: PackParts): Promise<AsyncGenerator<Buffer, void>> {
    const pack = new Pack(parts, await accountNames());
    return pack.#stream(async function* () {
      await using top = directory;
      await using trail = new Trail(top, parts.own);
      if (parts.copy)
        yield* pack.#put(pack.#header({ name: './', type: 'directory', size: 0, stat: top.stat }));
      yield* pack.#directory(trail, '');
    });
  }

  /** The stream of one open file, which is closed at its end. */
  static async ofFile(
    handle: FileHandle,
    name: BytePath,
    parts: PackParts,
  ): Promise<AsyncGenerator<Buffer, void>> {
    const pack = new Pack(parts, await accountNames());
    return pack.#stream(async function* () {
      await using file = handle;
      yield* pack.#content(file.fd, name, await file.stat());
    });
  }

  async *#stream(entries: () => AsyncGenerator<Buffer, void>): AsyncGenerator<Buffer, void> {
    yield* entries();
    yield* this.#put(TAR_END);
    if (this.#filled > 0) yield this.#chunk.subarray(0, this.#filled);
  }

  async *#directory(trail: Trail, above: BytePath): AsyncGenerator<Buffer, void> {
    const { depth, real } = trail;
    if (depth > FILE_DEPTH_MAX) throw conflictAt(real, 'is nested too deep');
    const hidden = await this.#own.hides(real);
    const list = () => readdirSync(trail.at(), { withFileTypes: true, encoding: 'latin1' as 'utf8' });
    const dirents = depth === 0 ? list() : yield* this.#allowed(above.slice(0, -1), list);
    if (dirents === null) return;
    const kept = dirents.filter(({ name }) => !isTemporaryName(name) && !hidden(name));
    kept.sort((one, other) => (one.name < other.name ? -1 : 1));
    for (const dirent of kept) {
      this.#signal.throwIfAborted();
      const own_name = dirent.name;
      const name = above + own_name;
      if (dirent.isFile()) yield* this.#file(trail, own_name, name);
      else if (dirent.isSymbolicLink()) yield* this.#symlink(trail, own_name, name);
      else if (!dirent.isDirectory()) yield* this.#special(trail, dirent, name);
      else {
        const refusal = await entering(trail, own_name);
        if (refusal !== null) {
          if (!isOutOfReach(refusal)) yield* this.#allowed(name, () => raise(refusal));
          continue;
        }
        yield* this.#put(this.#header({ name: `${name}/`, type: 'directory', size: 0, stat: trail.stat }));
        yield* this.#directory(trail, `${name}/`);
        await trail.leave();
        if (trail.depth !== depth) throw conflictAt(real, 'was moved while it was read');
      }
    }
  }

  /** What a name is; null for nothing, or for what the account may not see. */
  #look(directory: Trail, own_name: BytePath, name: BytePath): Generator<Buffer, Stats | null> {
    const look = () => lstatSync(directory.at(own_name), { throwIfNoEntry: false }) ?? null;
    return this.#allowed(name, look);
  }

  *#symlink(directory: Trail, own_name: BytePath, name: BytePath): Generator<Buffer, void> {
    const stat = yield* this.#look(directory, own_name, name);
    if (!stat?.isSymbolicLink()) return;
    const link_name = unlessGone(() => readlinkSync(directory.at(own_name), 'latin1'));
    if (link_name === null) return;
    const first = this.#copy !== null && stat.nlink > 1 ? this.#firstName(stat, name) : null;
    const type = first === null ? 'symlink' : 'link';
    yield* this.#put(this.#header({ name, type, size: 0, stat, link_name: first ?? link_name }));
  }

  /** Of a pipe the pipe; other things are only told of. */
  *#special(directory: Trail, dirent: Dirent<string>, name: BytePath): Generator<Buffer, void> {
    if (this.#copy === null) return;
    if (!dirent.isFIFO()) {
      yield* this.#lose(name, `is a ${dirent.isSocket() ? 'socket' : 'device'}, which is left out`);
      return;
    }
    const stat = yield* this.#look(directory, dirent.name, name);
    if (stat?.isFIFO()) yield* this.#put(this.#header({ name, type: 'fifo', size: 0, stat }));
  }

  *#lose(path: BytePath, what: string): Generator<Buffer, void> {
    if (this.#copy === null) return;
    if (this.#copy.onLoss) this.#copy.onLoss({ path, what, is_failure: true });
    else
      yield* this.#put(
        this.#header({ name: path, type: 'left-out', size: 0, stat: NOTHING, link_name: what }),
      );
  }

  /** The result of a call; null, and told of in the copy of a tree, where the account may not make it. */
  *#allowed<Result>(path: BytePath, call: () => Result): Generator<Buffer, Result | null> {
    try {
      return call();
    } catch (error) {
      if (this.#copy === null || !isSystemError(error, 'EACCES', 'EPERM')) throw error;
      yield* this.#lose(path, 'cannot be read: permission denied');
      return null;
    }
  }

  async *#file(directory: Trail, own_name: BytePath, name: BytePath): AsyncGenerator<Buffer, void> {
    const fd = yield* this.#allowed(name, () => unlessGone(() => openSync(directory.at(own_name), READ)));
    if (fd === null) return;
    try {
      const stat = fstatSync(fd);
      if (!stat.isFile()) return;
      if (stat.nlink > 1) {
        if (!(await this.#isAllowed(stat))) return;
        // In the order of the archive: a link may only name what comes before it.
        const link_name = this.#firstName(stat, name);
        if (link_name !== null) {
          yield* this.#put(this.#header({ name, type: 'link', size: 0, stat, link_name }));
          return;
        }
      }
      yield* this.#content(fd, name, stat);
      if (this.#copy !== null && fstatSync(fd).size > stat.size)
        yield* this.#lose(
          name,
          `became longer while it was copied; its first ${stat.size} bytes were copied`,
        );
    } catch (error) {
      throw error instanceof FileShrunk
        ? conflictAt(joined(directory.real, own_name), 'became shorter while it was read')
        : error;
    } finally {
      closeSync(fd);
    }
  }

  async #isAllowed(stat: Stats): Promise<boolean> {
    return this.#own.checkNames(stat).then(
      () => true,
      (error) => {
        if (error instanceof ApiError) return false;
        throw error;
      },
    );
  }

  /** The name under which the same file was found before; null if it is new. */
  #firstName({ dev, ino }: Stats, name: BytePath): BytePath | null {
    const identity = `${dev}:${ino}`;
    const first = this.#first_names.get(identity);
    if (first !== undefined) return first;
    if (this.#first_names.size < LINKS_MAX) this.#first_names.set(identity, name);
    return null;
  }

  async *#content(fd: number, name: BytePath, stat: Stats): AsyncGenerator<Buffer, void> {
    const shown = shownBytes(name);
    // The records of a sparse file are UTF-8.
    if (!isSparse(stat) || shown.base64 !== null) {
      yield* this.#put(this.#header({ name, type: 'file', size: stat.size, stat }));
      yield* this.#bytes(fd, { start: 0, end: stat.size });
      yield* this.#put(padding(stat.size));
      return;
    }
    const ranges = await dataRanges(fd, stat.size, this.#signal);
    const map = sparseMap(ranges, stat.size);
    const size = ranges.reduce((sum, { start, end }) => sum + end - start, map.length);
    const records = sparseRecords(shown.text, stat.size);
    const sparse_name = `GNUSparseFile.0/${name.slice(name.lastIndexOf('/') + 1)}`;
    yield* this.#put(this.#header({ name: sparse_name, type: 'file', size, stat, records }), map);
    for (const range of ranges) yield* this.#bytes(fd, range);
    yield* this.#put(padding(size));
  }

  *#bytes(fd: number, { start, end }: ByteRange): Generator<Buffer, void> {
    for (let position = start; position < end; ) {
      const room = Math.min(CHUNK_BYTES - this.#filled, end - position);
      const length = readSync(fd, this.#chunk, this.#filled, room, position);
      if (length === 0) throw new FileShrunk();
      position += length;
      this.#filled += length;
      if (this.#filled === CHUNK_BYTES) yield this.#next();
    }
  }

  #header(entry: Omit<TarEntry, 'user' | 'group'>): Buffer {
    const { uid, gid } = entry.stat;
    return tarHeader({ ...entry, user: this.#names.user(uid), group: this.#names.group(gid) });
  }

  *#put(...data: Buffer[]): Generator<Buffer, void> {
    for (const piece of data) {
      for (let at = 0; at < piece.length; ) {
        const length = piece.copy(this.#chunk, this.#filled, at);
        at += length;
        this.#filled += length;
        if (this.#filled === CHUNK_BYTES) yield this.#next();
      }
    }
  }

  /** The chunk, which whoever takes it may free; the next one takes its place. */
  #next(): Buffer {
    const full = this.#chunk;
    this.#chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
    this.#filled = 0;
    return full;
  }
}

/** Of an entry that nothing is made of. */
const NOTHING = { mode: 0, uid: 0, gid: 0, mtimeMs: 0 };

function unlessGone<Result>(call: () => Result): Result | null {
  try {
    return call();
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ELOOP', 'ENXIO')) return null;
    throw error;
  }
}

/** Null once a directory is entered; otherwise what it failed with, and nothing has changed. */
async function entering(trail: Trail, name: BytePath): Promise<unknown> {
  return trail.enter(name).then(
    () => null,
    (error) => error,
  );
}

/** Whether what failed is not there any more, or belongs to the daemon. */
function isOutOfReach(error: unknown): boolean {
  if (isSystemError(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return true;
  return error instanceof ApiError && error.code === 'forbidden';
}

function raise(error: unknown): never {
  throw error;
}
