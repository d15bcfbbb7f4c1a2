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
  readlinkSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { ARCHIVE_LINKS_MAX } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { type BytePath, joined, shownBytes, systemPath } from '../byte-path.ts';
import { makeDirectories } from '../change/make-directory.ts';
import { removeTree } from '../change/remove.ts';
import type { UploadJournal } from '../change/upload-journal.ts';
import { NEW_FILE } from '../change/write.ts';
import { Directory } from '../directory.ts';
import { fileError, isSystemError } from '../file-error.ts';
import { freeBuffer } from '../free-buffer.ts';
import { MODE_BITS, SET_IDS } from '../mode.ts';
import type { OwnPlaces } from '../own-places.ts';
import { checkNewName, findPlace } from '../place.ts';
import { type ArchiveEntry, archiveEntries } from './archive-entries.ts';
import { cutOff, invalidEntry } from './archive-error.ts';
import { Inside, namesOf } from './inside.ts';
import { SparseReader } from './sparse-reader.ts';
import { HAS_SET_IDS, type TreeCopy } from './tree-copy.ts';

const PERMISSIONS = 0o777;
/** Of directories. A file's set-user-ID bit would be for an owner that the archive does not name. */
const DIRECTORY_PERMISSIONS = 0o3777;
/** What making something in a directory needs of its owner. */
const OWN_WRITING = 0o300;

/** How often links are looked at again at the end; then all of them go. */
const TURNS_MAX = 8;
const LEADS_OUT = 'is a link that leads out of the directory';

/** An archive to unpack. */
export interface UnpackRequest {
  path: BytePath;
  data: AsyncIterable<Buffer>;
  /** Null for any other archive. */
  copy: TreeCopy | null;
  signal: AbortSignal;
}

/** What unpacking uses. */
export interface UnpackParts {
  own: OwnPlaces;
  journal: Pick<UploadJournal, 'temporaryIn'>;
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
  { path, data, copy, signal }: UnpackRequest,
  parts: UnpackParts,
): Promise<Unpacked> {
  const place = await findPlace(path, parts.own, { follow: true, parents: true });
  await using above = place.directory;
  checkNewName(place);
  const names = place.name === '.' ? [] : [...place.missing, place.name];
  if (place.stat && !place.stat.isDirectory()) throw new ApiError('not_a_directory');
  await using top = await makeDirectories(above, names, parts.own, signal);
  const temporary = await parts.journal.temporaryIn(top);
  try {
    mkdirSync(top.at(temporary.name), 0o700);
    await using aside = await Directory.open(top.at(temporary.name), parts.own, true);
    return await new Unpacking({ top, aside, own: parts.own, copy, signal }).run(data);
  } finally {
    await removeTree(top, temporary.name, parts.own);
    await temporary.forget();
  }
}

/** What an archive is unpacked with. */
interface UnpackingParts extends Pick<UnpackRequest, 'copy' | 'signal'> {
  top: Directory;
  /** A directory for what is being made, which nobody else can enter. */
  aside: Directory;
  own: OwnPlaces;
}

class Unpacking {
  readonly #top: Directory;
  readonly #aside: Directory;
  readonly #own: OwnPlaces;
  readonly #copy: TreeCopy | null;
  readonly #inside: Inside;
  readonly #signal: AbortSignal;
  /** Paths below the top of directories that nothing could be made in with their modes. */
  readonly #modes = new Map<BytePath, number>();
  /** Paths below the top of the symbolic links that were made. */
  readonly #links = new Set<BytePath>();
  #made = 0;

  constructor({ top, aside, own, copy, signal }: UnpackingParts) {
    this.#copy = copy;
    this.#top = top;
    this.#aside = aside;
    this.#own = own;
    this.#signal = signal;
    this.#inside = new Inside(top, own, signal);
  }

  async run(data: AsyncIterable<Buffer>): Promise<Unpacked> {
    await using _ = this.#inside;
    const result = { entries: 0, bytes: 0 };
    try {
      for await (const entry of archiveEntries(data)) {
        if (this.#signal.aborted) throw cutOff();
        result.bytes += await this.#add(entry);
        result.entries += 1;
      }
    } catch (error) {
      await this.#removeLinksOut();
      throw this.#signal.aborted ? cutOff() : error;
    }
    const removed = await this.#removeLinksOut();
    if (removed !== null) throw invalidEntry(removed, LEADS_OUT);
    for (const [path, mode] of [...this.#modes].reverse()) {
      chmodSync((await this.#inside.directory(path.split('/'), true)).at(), mode);
    }
    return result;
  }

  /** Returns the bytes of its content. */
  async #add(entry: ArchiveEntry): Promise<number> {
    const names = namesOf(entry.name);
    if (names.length === 0) return 0;
    try {
      if (entry.type === 'file') return await this.#file(entry, names);
      if (entry.type === 'directory') await this.#directory(entry, names);
      else if (entry.type === 'symlink') await this.#symlink(entry, names);
      else if (entry.type === 'link') await this.#link(entry, names);
      else throw invalidEntry(entry.name, `is of the type ${entry.type}, which is not accepted`);
    } catch (error) {
      throw fileError(error, joined(this.#top.real, names.join('/')), 'body');
    }
    return 0;
  }

  async #directory(entry: ArchiveEntry, names: BytePath[]): Promise<void> {
    const directory = await this.#inside.directory(names);
    const mode = entry.mode & DIRECTORY_PERMISSIONS;
    const path = names.join('/');
    this.#modes.delete(path);
    if ((mode & OWN_WRITING) === OWN_WRITING) chmodSync(directory.at(), mode);
    else {
      checkRoom(this.#modes, entry.name);
      this.#modes.set(path, mode);
    }
  }

  async #symlink({ name, link_name }: ArchiveEntry, names: BytePath[]): Promise<void> {
    await this.#checkSymlink(name, link_name, names);
    const aside = this.#nextAside();
    symlinkSync(systemPath(link_name), aside);
    await this.#place(aside, names);
  }

  /** Throws `invalid_request` for a symbolic link that leads out from here. Remembers the others until the end. */
  async #checkSymlink(name: BytePath, target: BytePath, names: BytePath[]): Promise<void> {
    checkRoom(this.#links, name);
    const above = names.slice(0, -1);
    // Where it stands must be there, so that it is followed from a real directory.
    await this.#inside.directory(above);
    const is_named = target !== '' && !target.includes('\0');
    if (!is_named || !(await this.#inside.holds(above, target))) throw invalidEntry(name, LEADS_OUT);
    this.#links.add(names.join('/'));
  }

  /**
   * Removes the links that lead out by now: entries that came later have changed what they mean, and the removal of one
   * changes others again. Returns the path of one; null if all stay inside.
   */
  async #removeLinksOut(): Promise<BytePath | null> {
    let first: BytePath | null = null;
    for (let turn = 1; this.#links.size > 0; turn++) {
      let is_changed = false;
      for (const path of this.#links) {
        if (turn <= TURNS_MAX && (await this.#staysInside(path))) continue;
        await this.#removeLink(path);
        first ??= path;
        is_changed = true;
      }
      if (!is_changed) break;
    }
    return first;
  }

  async #staysInside(path: BytePath): Promise<boolean> {
    const names = path.split('/');
    const name = names.pop() as BytePath;
    try {
      const directory = await this.#inside.directory(names, true);
      const stat = await directory.look(name);
      if (!stat?.isSymbolicLink()) return true;
      return await this.#inside.holds(names, readlinkSync(directory.at(name), 'latin1'));
    } catch (error) {
      // Where nobody can go, no link is; one that takes too many steps is none to keep.
      return error instanceof ApiError ? error.code === 'not_a_directory' : true;
    }
  }

  async #removeLink(path: BytePath): Promise<void> {
    this.#links.delete(path);
    const names = path.split('/');
    const name = names.pop() as BytePath;
    const directory = await this.#inside.directory(names, true);
    if ((await directory.look(name))?.isSymbolicLink()) unlinkSync(directory.at(name));
  }

  async #link({ name, link_name }: ArchiveEntry, names: BytePath[]): Promise<void> {
    const target = targetNames(name, link_name);
    const target_name = target.at(-1);
    const go = () => this.#inside.directory(target.slice(0, -1), true);
    let from = await go();
    const stat = target_name === undefined ? null : await from.look(target_name);
    if (stat?.isSymbolicLink()) {
      await this.#checkSymlink(name, readlinkSync(from.at(target_name as BytePath), 'latin1'), names);
      from = await go();
    } else if (!stat?.isFile()) throw invalidEntry(name, 'is a link to what is no file in the directory');
    await this.#own.checkNames(stat);
    const aside = this.#nextAside();
    linkSync(from.at(target_name as BytePath), aside);
    await this.#place(aside, names);
  }

  /** Returns the bytes of its content. */
  async #file(entry: ArchiveEntry, names: BytePath[]): Promise<number> {
    const mode = this.#modeOf(entry, names);
    const aside = this.#nextAside();
    // Nobody else can enter the folder that it is made in.
    const fd = openSync(aside, NEW_FILE, mode);
    let bytes = 0;
    try {
      bytes = await writeContent(fd, entry);
      if ((mode & (umask() | ~PERMISSIONS)) !== 0) fchmodSync(fd, mode);
      // Of a negative number, Node makes the present; not of its digits.
      const modified = String(entry.modified_s);
      if (!Number.isNaN(entry.modified_s)) futimesSync(fd, modified, modified);
    } finally {
      closeSync(fd);
    }
    await this.#place(aside, names);
    return bytes;
  }

  /** The mode of a new file. */
  #modeOf({ mode }: ArchiveEntry, names: readonly BytePath[]): number {
    if (this.#copy === null) return mode & PERMISSIONS;
    if (this.#copy.is_trusted || (mode & SET_IDS) === 0) return mode & MODE_BITS;
    this.#copy.onLoss({ path: names.join('/'), what: HAS_SET_IDS, is_left_out: false });
    return mode & MODE_BITS & ~SET_IDS;
  }

  async #place(aside: string | Buffer, names: BytePath[]): Promise<void> {
    const directory = await this.#inside.directory(names.slice(0, -1));
    const name = names.at(-1) as BytePath;
    await this.#own.checkName(joined(directory.real, name));
    const found = await directory.look(name);
    if (found && !found.isFile() && !found.isSymbolicLink() && !found.isDirectory()) {
      const path = shownBytes(joined(directory.real, name)).text;
      throw new ApiError('not_a_file', `${path} is no file: nothing takes its place.`, { path });
    }
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

/** The names of what a hard link leads to. Throws `invalid_request` naming the link, not its target. */
function targetNames(name: BytePath, link_name: BytePath): BytePath[] {
  try {
    return namesOf(link_name);
  } catch {
    throw invalidEntry(name, LEADS_OUT);
  }
}

/** Throws `invalid_request` for an entry that is to be remembered beyond the bound. */
function checkRoom({ size }: { size: number }, name: BytePath): void {
  if (size < ARCHIVE_LINKS_MAX) return;
  throw invalidEntry(
    name,
    `is beyond the ${ARCHIVE_LINKS_MAX} links, or directories without write permission`,
  );
}

async function writeContent(fd: number, { name, sparse: file, content }: ArchiveEntry): Promise<number> {
  const sparse = file && new SparseReader(name, file);
  let bytes = 0;
  for await (const chunk of content) {
    for (const { position, data } of sparse?.parts(chunk) ?? [{ position: bytes, data: chunk }]) {
      writeAll(fd, data, position);
      bytes += data.length;
    }
    if (!sparse) freeBuffer(chunk);
  }
  sparse?.end();
  if (file) ftruncateSync(fd, file.size);
  return bytes;
}

/** Writes all of `data` at a position of a file; the kernel may take it in parts. */
function writeAll(fd: number, data: Buffer, position: number): void {
  for (let done = 0; done < data.length; ) {
    done += writeSync(fd, data, done, data.length - done, position + done);
  }
}

let known_umask: number | null = null;

/** What the kernel takes from the modes of new files. Read once: a program sets it at its start. */
function umask(): number {
  if (known_umask !== null) return known_umask;
  const [, octal = '777'] = /^Umask:\s+([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? [];
  known_umask = Number.parseInt(octal, 8);
  return known_umask;
}
