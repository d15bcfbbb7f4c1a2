import {
  chmodSync,
  closeSync,
  fchmodSync,
  ftruncateSync,
  futimesSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { ApiError } from '../../contract/errors.ts';
import { type BytePath, joined, shownBytes, systemPath } from '../byte-path.ts';
import { makeDirectories } from '../change/make-directory.ts';
import { removeTree } from '../change/remove.ts';
import type { UploadJournal } from '../change/upload-journal.ts';
import { NEW_FILE } from '../change/write.ts';
import { Directory } from '../directory.ts';
import { fileError, isSystemError } from '../file-error.ts';
import { freeBuffer } from '../free-buffer.ts';
import type { OwnPlaces } from '../own-places.ts';
import { checkNewName, findPlace } from '../place.ts';
import { type ArchiveEntry, archiveEntries, invalidEntry } from './archive-entries.ts';
import { Inside, namesOf } from './inside.ts';
import { SparseReader } from './sparse-reader.ts';

const PERMISSIONS = 0o777;
/** What making something in a directory needs of its owner. */
const OWN_WRITING = 0o300;

/** An archive to unpack. */
export interface UnpackRequest {
  path: BytePath;
  data: AsyncIterable<Buffer>;
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
 * Unpacks a tar or tar.gz stream under a directory, which is made if it is missing. Calls the system at once, as suits a
 * thread of its own or a program of its own. Each file is made aside and then moved
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
    mkdirSync(top.at(temporary.name), 0o700);
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
  /** Of directories that nothing could be made in with them. */
  readonly #modes: { names: BytePath[]; mode: number }[] = [];
  #made = 0;

  constructor(top: Directory, aside: Directory, own: OwnPlaces) {
    this.#top = top;
    this.#aside = aside;
    this.#own = own;
    this.#inside = new Inside(top, own);
  }

  async run(data: AsyncIterable<Buffer>, signal: AbortSignal): Promise<Unpacked> {
    const result = { entries: 0, bytes: 0 };
    try {
      for await (const entry of archiveEntries(data, signal)) {
        result.bytes += await this.#add(entry);
        result.entries += 1;
        if (this.#inside.is_full) await this.#inside.close();
      }
      for (const { names, mode } of this.#modes.reverse()) {
        chmodSync((await this.#inside.directory(names, true)).at(), mode);
        if (this.#inside.is_full) await this.#inside.close();
      }
      return result;
    } finally {
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
          await this.#directory(entry, names);
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

  async #directory(entry: ArchiveEntry, names: BytePath[]): Promise<void> {
    const directory = await this.#inside.directory(names);
    const mode = entry.mode & PERMISSIONS;
    if ((mode & OWN_WRITING) === OWN_WRITING) chmodSync(directory.at(), mode);
    else this.#modes.push({ names, mode });
  }

  async #symlink({ name, link_name }: ArchiveEntry, names: BytePath[]): Promise<void> {
    const above = names.slice(0, -1);
    const is_inside = link_name !== '' && !link_name.includes('\0') && this.#inside.holds(above, link_name);
    if (!is_inside) throw invalidEntry(name, 'is a link that leads out of the directory');
    const aside = this.#nextAside();
    symlinkSync(systemPath(link_name), aside);
    await this.#place(aside, names);
  }

  async #link({ name, link_name }: ArchiveEntry, names: BytePath[]): Promise<void> {
    const target = namesOf(link_name);
    const target_name = target.at(-1);
    const from = await this.#inside.directory(target.slice(0, -1), true);
    const stat = target_name === undefined ? null : await from.look(target_name);
    if (!stat?.isFile()) throw invalidEntry(name, 'is a link to what is no file in the directory');
    await this.#own.checkNames(stat);
    const aside = this.#nextAside();
    linkSync(from.at(target_name as BytePath), aside);
    await this.#place(aside, names);
  }

  /** Returns the bytes of its content. */
  async #file(entry: ArchiveEntry, names: BytePath[]): Promise<number> {
    const mode = entry.mode & PERMISSIONS;
    const aside = this.#nextAside();
    // Nobody else can enter the folder that it is made in.
    const fd = openSync(aside, NEW_FILE, mode);
    let bytes = 0;
    try {
      bytes = await writeContent(fd, entry);
      if ((mode & umask()) !== 0) fchmodSync(fd, mode);
      const modified_s = entry.modified.getTime() / 1_000;
      if (!Number.isNaN(modified_s)) futimesSync(fd, modified_s, modified_s);
    } finally {
      closeSync(fd);
    }
    await this.#place(aside, names);
    return bytes;
  }

  async #place(aside: string | Buffer, names: BytePath[]): Promise<void> {
    const directory = await this.#inside.directory(names.slice(0, -1));
    const name = names.at(-1) as BytePath;
    await this.#own.checkName(joined(directory.real, name));
    try {
      renameSync(aside, directory.at(name));
    } catch (error) {
      if (!isSystemError(error, 'EISDIR', 'ENOTEMPTY', 'EEXIST')) throw error;
      const path = shownBytes(joined(directory.real, name)).text;
      throw new ApiError('is_a_directory', `${path} is a directory.`, { path });
    }
  }

  #nextAside(): string | Buffer {
    return this.#aside.at(String(++this.#made));
  }
}

async function writeContent(fd: number, { name, real_size, content }: ArchiveEntry): Promise<number> {
  const sparse = real_size === null ? null : new SparseReader(name, real_size);
  let bytes = 0;
  for await (const chunk of content) {
    for (const { position, data } of sparse?.parts(chunk) ?? [{ position: bytes, data: chunk }]) {
      writeAll(fd, data, position);
      bytes += data.length;
    }
    if (!sparse) freeBuffer(chunk);
  }
  sparse?.end();
  if (real_size !== null) ftruncateSync(fd, real_size);
  return bytes;
}

/** Writes all of `data` at a position of a file; the kernel may take it in parts. */
function writeAll(fd: number, data: Buffer, position: number): void {
  for (let done = 0; done < data.length; ) {
    done += writeSync(fd, data, done, data.length - done, position + done);
  }
}

async function skip(content: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of content);
}

let known_umask: number | null = null;

/** What the kernel takes from the modes of new files. Read once: a program sets it at its start. */
function umask(): number {
  if (known_umask !== null) return known_umask;
  const [, octal = '777'] = /^Umask:\s+([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? [];
  known_umask = Number.parseInt(octal, 8);
  return known_umask;
}
