import { constants, type Dirent, type Stats } from 'node:fs';
import { type FileHandle, open, readdir, readlink } from 'node:fs/promises';
import { ApiError } from '../../contract/errors.ts';
import { isTemporaryName } from '../../contract/temporary-file.ts';
import { type AccountNames, accountNames } from '../accounts.ts';
import { type BytePath, shownBytes } from '../byte-path.ts';
import type { ByteRange } from '../byte-range.ts';
import { Directory } from '../directory.ts';
import { conflictAt, fileShrunk, isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { checkRegular } from '../regular-file.ts';
import { dataRanges, isSparse, sparseMap, sparseRecords } from './sparse.ts';
import { padding, TAR_END, type TarEntry, tarHeader } from './tar-header.ts';

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_NOFOLLOW;
/** Files up to this size are read ahead, several together. */
const SMALL_BYTES = 64 * 1024;
const TOGETHER = 16;
const CHUNK_BYTES = 256 * 1024;
/** Each level holds a descriptor. */
const DEPTH_MAX = 400;
/** Other names of files that are remembered; further ones become files of their own. */
const LINKS_MAX = 100_000;

/** What was found under a name, ready to be written. */
interface Found {
  name: BytePath;
  stat: Stats;
  link_name?: BytePath;
  /** The content of a small file. */
  content?: Buffer;
}

/**
 * Writes a directory's tree, or a single file, as a tar stream. Names are relative to the directory, links stay links, and
 * sparse files stay small. Sockets, pipes and devices are left out, and so are the daemon's own files and uploads under
 * way. What cannot be read, or changes its size meanwhile, breaks the stream.
 */
export class Pack {
  readonly #own: OwnPlaces;
  readonly #signal: AbortSignal;
  readonly #names: AccountNames;
  readonly #first_names = new Map<string, BytePath>();
  /** Written together: an entry is often smaller than a packet. */
  #waiting: Buffer[] = [];
  #waiting_bytes = 0;

  private constructor(own: OwnPlaces, signal: AbortSignal, names: AccountNames) {
    this.#own = own;
    this.#signal = signal;
    this.#names = names;
  }

  /** The stream of a directory's tree, which is closed at its end. */
  static async ofDirectory(
    directory: Directory,
    own: OwnPlaces,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<Buffer, void>> {
    const pack = new Pack(own, signal, await accountNames());
    return pack.#stream(async function* () {
      await using top = directory;
      yield* pack.#directory(top, '', 0);
    });
  }

  /** The stream of one open file, which is closed at its end. */
  static async ofFile(
    handle: FileHandle,
    name: BytePath,
    own: OwnPlaces,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<Buffer, void>> {
    const pack = new Pack(own, signal, await accountNames());
    return pack.#stream(async function* () {
      await using file = handle;
      yield* pack.#content(file, { name, stat: await file.stat() });
    });
  }

  async *#stream(entries: () => AsyncGenerator<Buffer, void>): AsyncGenerator<Buffer, void> {
    yield* entries();
    yield* this.#put(TAR_END);
    if (this.#waiting_bytes > 0) yield Buffer.concat(this.#waiting);
  }

  async *#directory(directory: Directory, above: BytePath, depth: number): AsyncGenerator<Buffer, void> {
    if (depth === DEPTH_MAX) throw conflictAt(directory.real, 'is nested too deep');
    const hidden = await this.#own.hides(directory.real);
    const dirents = await readdir(directory.at(), { withFileTypes: true, encoding: 'latin1' as 'utf8' });
    const kept = dirents.filter(({ name }) => !isTemporaryName(name) && !hidden(name));
    kept.sort((one, other) => (one.name < other.name ? -1 : 1));
    for (let i = 0; i < kept.length; i += TOGETHER) {
      this.#signal.throwIfAborted();
      const batch = kept.slice(i, i + TOGETHER).map((dirent) => this.#look(directory, dirent, above));
      for (const found of await Promise.all(batch)) {
        if (found) yield* this.#entry(directory, found, depth);
      }
    }
  }

  async *#entry(directory: Directory, found: Found, depth: number): AsyncGenerator<Buffer, void> {
    const { name, stat, content } = found;
    // In the order of the archive: a link may only name what comes before it.
    const first_name = stat.isFile() && stat.nlink > 1 ? this.#firstName(stat, name) : null;
    const link_name = first_name ?? found.link_name;
    const own_name = name.slice(name.lastIndexOf('/') + 1);
    if (stat.isDirectory()) {
      await using inside = await openIfThere(directory, own_name, this.#own);
      if (!inside) return;
      yield* this.#put(this.#header({ name: `${name}/`, type: 'directory', size: 0, stat: inside.stat }));
      yield* this.#directory(inside, `${name}/`, depth + 1);
    } else if (link_name !== undefined) {
      const type = stat.isSymbolicLink() ? 'symlink' : 'link';
      yield* this.#put(this.#header({ name, type, size: 0, stat, link_name }));
    } else if (content) {
      const { length: size } = content;
      yield* this.#put(this.#header({ name, type: 'file', size, stat }), content, padding(size));
    } else {
      const handle = await open(directory.at(own_name), READ).catch(unlessGone);
      if (!handle) return;
      await using file = handle;
      const now = await file.stat();
      checkRegular(now);
      await this.#own.checkNames(now);
      yield* this.#content(file, { name, stat: now });
    }
  }

  /** Null for what is left out. */
  async #look(directory: Directory, dirent: Dirent, above: BytePath): Promise<Found | null> {
    const name = above + dirent.name;
    if (dirent.isFile()) return this.#file(directory, dirent.name, name);
    if (!dirent.isDirectory() && !dirent.isSymbolicLink()) return null;
    const stat = await directory.look(dirent.name);
    if (!stat?.isSymbolicLink()) return stat?.isDirectory() ? { name, stat } : null;
    const link_name = await readlink(directory.at(dirent.name), 'latin1').catch(unlessGone);
    return link_name === null ? null : { name, stat, link_name };
  }

  async #file(directory: Directory, own_name: BytePath, name: BytePath): Promise<Found | null> {
    const handle = await open(directory.at(own_name), READ).catch(unlessGone);
    if (!handle) return null;
    await using file = handle;
    const stat = await file.stat();
    if (!stat.isFile()) return null;
    if (stat.nlink > 1 && !(await this.#isAllowed(stat))) return null;
    if (stat.size > SMALL_BYTES) return { name, stat };
    const content = Buffer.allocUnsafe(stat.size);
    const { bytesRead: length } = await file.read(content, 0, stat.size, 0);
    if (length !== stat.size) throw fileShrunk();
    return { name, stat, content };
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

  async *#content(handle: FileHandle, { name, stat }: Found): AsyncGenerator<Buffer, void> {
    const shown = shownBytes(name);
    // The records of a sparse file are UTF-8.
    if (!isSparse(stat) || shown.base64 !== null) {
      yield* this.#put(this.#header({ name, type: 'file', size: stat.size, stat }));
      yield* this.#bytes(handle, { start: 0, end: stat.size });
      yield* this.#put(padding(stat.size));
      return;
    }
    const ranges = await dataRanges(handle, stat.size, this.#signal);
    const map = sparseMap(ranges, stat.size);
    const size = ranges.reduce((sum, { start, end }) => sum + end - start, map.length);
    const records = sparseRecords(shown.text, stat.size);
    const sparse_name = `GNUSparseFile.0/${name.slice(name.lastIndexOf('/') + 1)}`;
    yield* this.#put(this.#header({ name: sparse_name, type: 'file', size, stat, records }), map);
    for (const range of ranges) yield* this.#bytes(handle, range);
    yield* this.#put(padding(size));
  }

  async *#bytes(handle: FileHandle, { start, end }: ByteRange): AsyncGenerator<Buffer, void> {
    for (let position = start; position < end; ) {
      this.#signal.throwIfAborted();
      const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, end - position));
      const { bytesRead: length } = await handle.read(chunk, 0, chunk.length, position);
      if (length === 0) throw fileShrunk();
      yield* this.#put(chunk.subarray(0, length));
      position += length;
    }
  }

  #header(entry: Omit<TarEntry, 'user' | 'group'>): Buffer {
    const { uid, gid } = entry.stat;
    return tarHeader({ ...entry, user: this.#names.user(uid), group: this.#names.group(gid) });
  }

  *#put(...data: Buffer[]): Generator<Buffer, void> {
    for (const piece of data) {
      this.#waiting.push(piece);
      this.#waiting_bytes += piece.length;
    }
    if (this.#waiting_bytes < CHUNK_BYTES) return;
    const together = this.#waiting.length === 1 ? (this.#waiting[0] as Buffer) : Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waiting_bytes = 0;
    yield together;
  }
}

function unlessGone(error: unknown): null {
  if (isSystemError(error, 'ENOENT', 'ELOOP', 'ENXIO')) return null;
  throw error;
}

async function openIfThere(directory: Directory, name: BytePath, own: OwnPlaces): Promise<Directory | null> {
  try {
    return await Directory.open(directory.at(name), own, true);
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return null;
    if (error instanceof ApiError && error.code === 'forbidden') return null;
    throw error;
  }
}
