import type { Clock } from '../base/clock.ts';
import { ApiError } from '../contract/errors.ts';
import type { FileEntry, FilePage } from '../contract/files.ts';
import { accountNames } from './accounts.ts';
import { type PackParts, packPath } from './archive/pack.ts';
import { type Unpacked, type UnpackRequest, unpackArchive } from './archive/unpack.ts';
import { type BytePath, systemPath } from './byte-path.ts';
import { copyPath } from './change/copy.ts';
import { type MakeRequest, makeDirectory } from './change/make-directory.ts';
import { movePath } from './change/move.ts';
import { NameLocks } from './change/name-locks.ts';
import { type RemoveRequest, removePath } from './change/remove.ts';
import type { TwoPaths } from './change/two-places.ts';
import type { UploadJournal } from './change/upload-journal.ts';
import { type WriteParts, type WriteRequest, type WriteResult, writeFile } from './change/write.ts';
import { Directory } from './directory.ts';
import { describeEntry, entryOf } from './entry.ts';
import { withPath } from './file-error.ts';
import { type ListRequest, listDirectory, NameCache } from './list.ts';
import { OwnPlaces } from './own-places.ts';
import { findPlace, isDirectoryPath } from './place.ts';
import { openRegularFile, type RegularFile } from './regular-file.ts';

/** What file operations are made with. */
export interface FilesParts {
  clock: Clock;
  /** The daemon's state directory, and its token and socket elsewhere: out of reach. */
  own_paths: readonly string[];
  /** What finds the temporary files of a killed daemon again. */
  journal: UploadJournal;
  /** Of a daemon that is another process: its entries in /proc are out of reach too. */
  daemon_pid?: number;
}

/**
 * File operations with the rights of this process. Errors are those of the catalogue, told of the path in question; what
 * the disk itself fails with is thrown as it is. Source: contract section 4, "Files".
 */
export class Files {
  readonly #own: OwnPlaces;
  readonly #names: NameCache;
  readonly #parts: WriteParts;

  constructor({ clock, own_paths, journal, daemon_pid }: FilesParts) {
    this.#own = new OwnPlaces(own_paths, daemon_pid);
    this.#names = new NameCache(clock);
    this.#parts = { own: this.#own, journal, clock, locks: new NameLocks() };
  }

  /** Describes a path; of a link, what it leads to. After a link, a slash stands for the directory that it leads to. */
  stat(path: BytePath): Promise<FileEntry> {
    return withPath(path, async () => {
      const place = await findPlace(path, this.#own, { follow: isDirectoryPath(path) });
      await using directory = place.directory;
      const { name, stat } = place;
      if (!stat) throw new ApiError('not_found');
      const shown = path.replace(/(.)\/+$/, '$1');
      if (name === '.') return entryOf(shown, stat, null, await accountNames());
      const described = { directory, name, path: shown, stat };
      return await describeEntry(described, await accountNames(), this.#own, 'throw');
    });
  }

  /** A page of a directory's entries. */
  list(request: ListRequest): Promise<FilePage> {
    return withPath(request.path, () => listDirectory(request, { own: this.#own, cache: this.#names }));
  }

  /** Opens a file for reading. The caller closes its handle. */
  open(path: BytePath): Promise<RegularFile> {
    return withPath(path, () => openRegularFile(systemPath(path), this.#own));
  }

  /** Writes a file, whole or not at all. */
  write(request: WriteRequest): Promise<WriteResult> {
    return withPath(request.path, () => writeFile(request, this.#parts));
  }

  /** Makes a directory; returns false where it was there. */
  makeDirectory(request: MakeRequest): Promise<boolean> {
    return withPath(request.path, () => makeDirectory(request, this.#own));
  }

  /** Removes a file, a link itself, or a directory. */
  remove(request: RemoveRequest): Promise<void> {
    return withPath(request.path, () => removePath(request, this.#parts));
  }

  /** Moves a file, a link itself or a directory. */
  move(paths: TwoPaths): Promise<void> {
    return withPath(paths.destination, () => movePath(paths, this.#parts), 'destination');
  }

  /** Copies a file or a whole tree. */
  copy(paths: TwoPaths): Promise<void> {
    return withPath(paths.destination, () => copyPath(paths, this.#parts), 'destination');
  }

  /** A tar stream of a directory's tree or of one file. */
  pack(path: BytePath, parts: Omit<PackParts, 'own'>): Promise<AsyncGenerator<Buffer, void>> {
    return withPath(path, () => packPath(path, { ...parts, own: this.#own }));
  }

  /** Unpacks a tar or tar.gz stream under a directory. */
  unpack(request: UnpackRequest): Promise<Unpacked> {
    return withPath(request.path, () => unpackArchive(request, this.#parts));
  }

  /** Where a directory really is, links followed. */
  realDirectory(path: BytePath): Promise<BytePath> {
    return withPath(path, async () => {
      await using directory = await Directory.open(systemPath(path), this.#own);
      return directory.real;
    });
  }
}
