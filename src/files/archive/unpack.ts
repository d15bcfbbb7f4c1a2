import { chmod, type FileHandle, link, mkdir, open, rename, symlink } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { ApiError } from '../../contract/errors.ts';
import { type BytePath, joined, shownBytes, systemPath } from '../byte-path.ts';
import { makeDirectories } from '../change/make-directory.ts';
import { checkNewName } from '../change/new-name.ts';
import { removeTree } from '../change/remove.ts';
import type { UploadJournal } from '../change/upload-journal.ts';
import { NEW_FILE } from '../change/write.ts';
import { writeAll } from '../change/write-all.ts';
import { Directory } from '../directory.ts';
import { fileError, isSystemError } from '../file-error.ts';
import type { OwnPlaces } from '../own-places.ts';
import { findPlace } from '../place.ts';
import { type ArchiveEntry, archiveEntries, invalidEntry } from './archive-entries.ts';
import { Inside, namesOf } from './inside.ts';
import { SparseReader } from './sparse-reader.ts';
import { umask } from './umask.ts';

/** Files up to this size are written while the next ones arrive. */
const SMALL_BYTES = 64 * 1024;
const TOGETHER = 16;
const PERMISSIONS = 0o777;

/** An archive to unpack. */
export interface UnpackRequest {
  path: BytePath;
  data: Readable;
  signal: AbortSignal;
}

/** What unpacking uses. */
export interface UnpackParts {
  own: OwnPlaces;
  journal: UploadJournal;
}

/** What was unpacked: entries, and bytes of their content. */
export interface Unpacked {
  entries: number;
  bytes: number;
}

/**
 * Unpacks a tar or tar.gz stream under a directory, which is made if it is missing. Each file is made aside and then moved
 * to its place, so that none is ever seen half; what was unpacked before an error stays. Throws `invalid_request` (body)
 * naming an entry that leads out or is neither file, directory nor link; otherwise `not_a_directory`, `forbidden`, or the
 * system's error.
 */
export async function unpackArchive(
  { path, data, signal }: UnpackRequest,
  parts: UnpackParts,
): Promise<Unpacked> {
  const place = await findPlace(path, parts.own, { follow: true, parents: true });
  await using above = place.directory;
  checkNewName(place);
  const names = place.name === '.' ? [] : [...place.missing, place.name];
  if (place.stat && !place.stat.isDirectory()) throw new ApiError('not_a_directory');
  await using top = await makeDirectories(above, names, parts.own);
  const temporary = await parts.journal.temporaryIn(top);
  try {
    await mkdir(top.at(temporary.name), 0o700);
    await using aside = await Directory.open(top.at(temporary.name), parts.own, true);
    return await new Unpacking(top, aside, parts.own).run(data, signal);
  } finally {
    await removeTree(top, temporary.name, parts.own);
    await temporary.forget();
  }
}

class Unpacking {
  readonly #top: Directory;
  readonly #aside: Directory;
  readonly #own: OwnPlaces;
  readonly #inside: Inside;
  /** Small files that are being written, by their paths. */
  readonly #writing = new Map<BytePath, Promise<void>>();
  readonly #modes: { names: BytePath[]; mode: number }[] = [];
  #failure: unknown = null;
  #made = 0;

  constructor(top: Directory, aside: Directory, own: OwnPlaces) {
    this.#top = top;
    this.#aside = aside;
    this.#own = own;
    this.#inside = new Inside(top, own);
  }

  async run(data: Readable, signal: AbortSignal): Promise<Unpacked> {
    const result = { entries: 0, bytes: 0 };
    try {
      for await (const entry of archiveEntries(data, signal)) {
        if (this.#failure) throw this.#failure;
        result.bytes += await this.#add(entry);
        result.entries += 1;
        if (this.#inside.is_full) await this.#settle();
      }
      await this.#settle();
      // A directory may forbid what is to be made in it, so that its mode comes last.
      for (const { names, mode } of this.#modes.reverse()) {
        await chmod((await this.#inside.directory(names, true)).at(), mode & PERMISSIONS);
        if (this.#inside.is_full) await this.#inside.close();
      }
      return result;
    } finally {
      await this.#writes();
      await this.#inside.close();
    }
  }

  /** Returns the bytes of its content. */
  async #add(entry: ArchiveEntry): Promise<number> {
    const names = namesOf(entry.name);
    if (names.length === 0) {
      await skip(entry.content);
      return 0;
    }
    try {
      switch (entry.type) {
        case 'directory':
          await this.#inside.directory(names);
          this.#modes.push({ names, mode: entry.mode });
          break;
        case 'symlink':
          await this.#symlink(entry, names);
          break;
        case 'link':
          await this.#link(entry, names);
          break;
        case 'file':
        case 'contiguous-file':
          return await this.#file(entry, names);
        default:
          throw invalidEntry(entry.name, `is of the type ${entry.type}, which is not accepted`);
      }
    } catch (error) {
      throw fileError(error, joined(this.#top.real, names.join('/')), 'body');
    }
    await skip(entry.content);
    return 0;
  }

  async #symlink({ name, link_name }: ArchiveEntry, names: BytePath[]): Promise<void> {
    const above = names.slice(0, -1);
    const is_inside = link_name !== '' && !link_name.includes('\0') && this.#inside.holds(above, link_name);
    if (!is_inside) throw invalidEntry(name, 'is a link that leads out of the directory');
    await this.#settle();
    const aside = this.#nextAside();
    await symlink(systemPath(link_name), this.#aside.at(aside));
    await this.#place(aside, names);
  }

  async #link({ name, link_name }: ArchiveEntry, names: BytePath[]): Promise<void> {
    await this.#settle();
    const target = namesOf(link_name);
    const target_name = target.at(-1);
    const from = await this.#inside.directory(target.slice(0, -1), true);
    const stat = target_name === undefined ? null : await from.look(target_name);
    if (!stat?.isFile()) throw invalidEntry(name, 'is a link to what is no file in the directory');
    await this.#own.checkNames(stat);
    const aside = this.#nextAside();
    await link(from.at(target_name as BytePath), this.#aside.at(aside));
    await this.#place(aside, names);
  }

  async #file(entry: ArchiveEntry, names: BytePath[]): Promise<number> {
    const path = names.join('/');
    if (entry.size <= SMALL_BYTES && entry.real_size === null) {
      const content = await collected(entry.content);
      // A later entry of the same name counts.
      await this.#writing.get(path);
      if (this.#writing.size >= TOGETHER) await Promise.race(this.#writing.values());
      // The directory is opened here, so that two files never make the same one at once.
      await this.#inside.directory(names.slice(0, -1));
      const written = this.#write(entry, names, (file) => writeAll(file, content, 0))
        .catch((error) => {
          this.#failure ??= fileError(error, joined(this.#top.real, path), 'body');
        })
        .finally(() => this.#writing.delete(path));
      this.#writing.set(path, written);
      return content.length;
    }
    await this.#writing.get(path);
    let bytes = 0;
    await this.#write(entry, names, async (file) => {
      const sparse = entry.real_size === null ? null : new SparseReader(entry.name, entry.real_size);
      for await (const chunk of entry.content) {
        for (const { position, data } of sparse?.parts(chunk) ?? [{ position: bytes, data: chunk }]) {
          await writeAll(file, data, position);
          bytes += data.length;
        }
      }
      sparse?.end();
      if (entry.real_size !== null) await file.truncate(entry.real_size);
    });
    return bytes;
  }

  async #write(
    { mode, modified }: ArchiveEntry,
    names: BytePath[],
    write: (file: FileHandle) => Promise<void>,
  ): Promise<void> {
    const aside = this.#nextAside();
    {
      // Nobody else can enter the folder that it is made in.
      await using file = await open(this.#aside.at(aside), NEW_FILE, mode & PERMISSIONS);
      await write(file);
      if ((mode & PERMISSIONS & umask()) !== 0) await file.chmod(mode & PERMISSIONS);
      if (!Number.isNaN(modified.getTime())) await file.utimes(modified, modified);
    }
    await this.#place(aside, names);
  }

  async #place(aside: BytePath, names: BytePath[]): Promise<void> {
    const directory = await this.#inside.directory(names.slice(0, -1));
    const name = names.at(-1) as BytePath;
    await this.#own.checkName(joined(directory.real, name));
    await rename(this.#aside.at(aside), directory.at(name)).catch((error) => {
      if (!isSystemError(error, 'EISDIR', 'ENOTEMPTY', 'EEXIST')) throw error;
      const path = shownBytes(joined(directory.real, name)).text;
      throw new ApiError('is_a_directory', `${path} is a directory.`, { path });
    });
  }

  #nextAside(): BytePath {
    return String(++this.#made);
  }

  /** Ends what is being written; throws what went wrong with it. */
  async #settle(): Promise<void> {
    await this.#writes();
    if (this.#failure) throw this.#failure;
    if (this.#inside.is_full) await this.#inside.close();
  }

  async #writes(): Promise<void> {
    await Promise.all(this.#writing.values());
  }
}

async function collected(content: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
}

async function skip(content: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of content);
}
