import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  type Stats,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { loadLibc } from '../../base/linux/native.ts';
import { ARCHIVE_LINKS_MAX } from '../../contract/defaults.ts';
import { ApiError, type ErrorCode } from '../../contract/errors.ts';
import { type BytePath, joined, shownBytes, systemPath } from '../byte-path.ts';
import { O_PATH } from '../calls.ts';
import { makeDirectories } from '../change/make-directory.ts';
import { removeTree } from '../change/remove.ts';
import type { UploadJournal } from '../change/upload-journal.ts';
import { Directory } from '../directory.ts';
import { fileError, isSystemError } from '../file-error.ts';
import { MODE_BITS, SET_IDS } from '../mode.ts';
import type { OwnPlaces } from '../own-places.ts';
import { checkNewName, findPlace } from '../place.ts';
import type { Trail } from '../trail.ts';
import { type ArchiveEntry, archiveEntries } from './archive-entries.ts';
import { cutOff, invalidEntry } from './archive-error.ts';
import { Inside, isIn, namesOf } from './inside.ts';
import { makeFile } from './made-file.ts';
import { checkRoom, MadeLinks } from './made-links.ts';
import { LEFT_OUT } from './tar-header.ts';
import { SETS_IDS, type TreeCopy } from './tree-copy.ts';

const PERMISSIONS = 0o777;
/** Of directories. A file's set-user-ID bit would be for an owner that the archive does not name. */
const DIRECTORY_PERMISSIONS = 0o3777;
/** What making something in a directory needs of its owner. */
const OWN_WRITING = 0o300;
const OWN_ALL = 0o700;
/** Directories above the last entry that are held open. */
const HELD_MAX = 10;

const LEADS_OUT = 'is a link that leads out of the directory';
const LINK_OUT = 'is a link that leads out of the tree, which only -p keeps';

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

/** A directory whose entries are being unpacked, and when it was modified. */
interface Entered {
  names: readonly BytePath[];
  modified_s: number;
  /** Open by its name, so that nobody needs to go back there; null for one of many. */
  fd: number | null;
}

/** What was unpacked: entries, and bytes of their content. */
export interface Unpacked {
  entries: number;
  bytes: number;
}

/**
 * Unpacks a tar or tar.gz stream under a directory, which is made if it is missing. Calls the system at once, as suits a
 * thread of its own or a program of its own. Each file is made aside and then moved
 * to its place, so that none is ever seen half; what was unpacked before an error stays. The copy of a tree leaves what is
 * there its mode and owner, and gives a new top those of the tree's. Throws `invalid_request` (body) naming an entry that
 * leads out or is neither file, directory, pipe nor link; otherwise `not_a_directory`, `forbidden`, or the system's error.
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
  let unpacking: Unpacking;
  let unpacked: Unpacked;
  try {
    mkdirSync(top.at(temporary.name), 0o700);
    await using aside = await Directory.open(top.at(temporary.name), parts.own, true);
    unpacking = new Unpacking({ top, aside, is_new: place.stat === null, own: parts.own, copy, signal });
    unpacked = await unpacking.run(data);
  } finally {
    await removeTree(top, temporary.name, parts.own);
    await temporary.forget();
  }
  unpacking.finishTop();
  return unpacked;
}

/** What an archive is unpacked with. */
interface UnpackingParts extends Pick<UnpackRequest, 'copy' | 'signal'> {
  top: Directory;
  /** Whether the top was made for this. */
  is_new: boolean;
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
  readonly #links: MadeLinks;
  /** From the top to that of the last entry: what is made in them changes their times. */
  readonly #entered: Entered[] = [];
  /** Times of directories that were left, which incremental archives come back to. Beyond the bound these count as changed. */
  readonly #left = new Map<BytePath, number>();
  readonly #is_new: boolean;
  #top_entry: ArchiveEntry | null = null;
  #made = 0;

  constructor({ top, aside, is_new, own, copy, signal }: UnpackingParts) {
    this.#copy = copy;
    this.#is_new = is_new;
    this.#top = top;
    this.#aside = aside;
    this.#own = own;
    this.#signal = signal;
    this.#inside = new Inside(top, own, signal);
    this.#links = new MadeLinks(this.#inside);
  }

  async run(data: AsyncIterable<Buffer>): Promise<Unpacked> {
    await using _ = this.#inside;
    try {
      return await this.#addAll(data);
    } finally {
      for (const { fd } of this.#entered.splice(0)) if (fd !== null) closeSync(fd);
    }
  }

  async #addAll(data: AsyncIterable<Buffer>): Promise<Unpacked> {
    const result = { entries: 0, bytes: 0 };
    try {
      for await (const entry of archiveEntries(data)) {
        if (this.#signal.aborted) throw cutOff();
        result.bytes += await this.#add(entry);
        result.entries += 1;
      }
    } catch (error) {
      await this.#links.removeOut(() => {});
      throw this.#signal.aborted ? cutOff() : error;
    }
    const removed = await this.#links.removeOut((path) => this.#loseLink(path));
    if (removed !== null && this.#copy === null) throw invalidEntry(removed, LEADS_OUT);
    await this.#leave([]);
    for (const [path, mode] of [...this.#modes].reverse()) {
      chmodSync((await this.#inside.directory(path.split('/'), true)).at(), mode);
    }
    return result;
  }

  /** Gives a new top what the archive says of it. */
  finishTop(): void {
    if (this.#top_entry === null) return;
    setTimes(this.#top.at(), this.#top_entry.modified_s);
    chmodSync(this.#top.at(), this.#top_entry.mode & DIRECTORY_PERMISSIONS);
  }

  /** Returns the bytes of its content. */
  async #add(entry: ArchiveEntry): Promise<number> {
    const names = namesOf(entry.name);
    if (names.length === 0) {
      if (this.#copy !== null && this.#is_new && entry.type === 'directory') {
        this.#top_entry = entry;
        // What is to be made is for nobody else meanwhile.
        chmodSync(this.#top.at(), (entry.mode & PERMISSIONS) | OWN_ALL);
      }
      return 0;
    }
    try {
      await this.#leave(names);
      if (entry.type === 'file') return await this.#file(entry, names);
      if (entry.type === 'directory') await this.#directory(entry, names);
      else if (entry.type === 'symlink') await this.#symlink(entry, names);
      else if (entry.type === 'link') await this.#link(entry, names);
      else if (entry.type === 'fifo') await this.#fifo(entry, names);
      else if (this.#copy !== null && isLoss(entry))
        this.#copy.onLoss({ path: names.join('/'), what: entry.link_name, is_failure: true });
      else throw invalidEntry(entry.name, `is of the type ${entry.type}, which is not accepted`);
    } catch (error) {
      throw fileError(error, joined(this.#top.real, names.join('/')), 'body');
    }
    return 0;
  }

  /** Gives the directories that the next entry is not in their times, and comes back to the one that it is in. */
  async #leave(names: readonly BytePath[]): Promise<void> {
    for (let last = this.#entered.at(-1); last && !isIn(names, last.names); last = this.#entered.at(-1)) {
      this.#entered.pop();
      if (this.#left.size < ARCHIVE_LINKS_MAX) this.#left.set(last.names.join('/'), last.modified_s);
      try {
        if (last.fd === null) setTimes((await this.#inside.back(last.names)).at(), last.modified_s);
        else setTimes(`/proc/self/fd/${last.fd}`, last.modified_s);
      } catch (error) {
        // Somebody else has moved it.
        const is_gone = isSystemError(error, 'ENOENT') || isApiError(error, 'not_a_directory');
        if (!is_gone) throw error;
      } finally {
        if (last.fd !== null) closeSync(last.fd);
      }
    }
    const above = names.slice(0, -1);
    if (above.length === 0 || above.length === this.#entered.at(-1)?.names.length) return;
    const modified_s = this.#left.get(above.join('/'));
    if (modified_s !== undefined) this.#entered.push({ names: above, modified_s, fd: null });
  }

  async #directory(entry: ArchiveEntry, names: BytePath[]): Promise<void> {
    const made_before = this.#inside.made;
    const directory = await this.#inside.directory(names);
    if (this.#copy !== null && this.#inside.made === made_before) return;
    // An earlier entry of the same directory.
    const earlier = this.#entered.at(-1)?.names.length === names.length ? this.#entered.pop() : null;
    const is_held = !earlier && this.#entered.length < HELD_MAX;
    const fd = earlier?.fd ?? (is_held ? openSync(directory.at(), O_PATH) : null);
    this.#entered.push({ names, modified_s: entry.modified_s, fd });
    const mode = entry.mode & DIRECTORY_PERMISSIONS;
    const path = names.join('/');
    this.#modes.delete(path);
    if ((mode & OWN_WRITING) === OWN_WRITING) chmodSync(directory.at(), mode);
    else {
      checkRoom(this.#modes, entry.name);
      this.#modes.set(path, mode);
    }
  }

  async #symlink(entry: ArchiveEntry, names: BytePath[]): Promise<void> {
    if (!(await this.#isKept(entry.name, entry.link_name, names))) return;
    const aside = this.#nextAside();
    symlinkSync(systemPath(entry.link_name), aside);
    setOwnTimes(aside, entry.modified_s);
    await this.#place(aside, names);
  }

  /** Whether a symbolic link is made here: it is remembered until the end. Throws `invalid_request` for one that leads out. */
  async #isKept(name: BytePath, target: BytePath, names: BytePath[]): Promise<boolean> {
    if (target === '' || target.includes('\0')) throw invalidEntry(name, LEADS_OUT);
    if (this.#copy?.is_trusted) return true;
    this.#links.checkRoom(name);
    const above = names.slice(0, -1);
    // Where it stands must be there, so that it is followed from a real directory.
    await this.#inside.directory(above);
    const is_inside = await this.#inside.holds(above, target);
    if (is_inside) this.#links.add(names.join('/'));
    else if (this.#copy) this.#loseLink(names.join('/'));
    else throw invalidEntry(name, LEADS_OUT);
    return is_inside;
  }

  #loseLink(path: BytePath): void {
    this.#copy?.onLoss({ path, what: LINK_OUT, is_failure: true });
  }

  /** One that is there stays. */
  async #fifo(entry: ArchiveEntry, names: BytePath[]): Promise<void> {
    const directory = await this.#inside.directory(names.slice(0, -1));
    if (lookNow(directory, names.at(-1) as BytePath)?.isFIFO()) return;
    const aside = this.#nextAside();
    const libc = await loadLibc();
    if (libc === null) throw invalidEntry(entry.name, 'is a pipe, which this installation cannot make');
    libc.makeFifo(String(aside));
    chmodSync(aside, entry.mode & PERMISSIONS);
    setOwnTimes(aside, entry.modified_s);
    await this.#place(aside, names);
  }

  async #link({ name, link_name }: ArchiveEntry, names: BytePath[]): Promise<void> {
    const target = targetNames(name, link_name);
    const target_name = target.at(-1);
    const go = () => this.#inside.directory(target.slice(0, -1), true);
    let from = await go();
    const stat = target_name === undefined ? null : await from.look(target_name);
    if (stat?.isSymbolicLink()) {
      const leads_to = readlinkSync(from.at(target_name as BytePath), 'latin1');
      if (!(await this.#isKept(name, leads_to, names))) return;
      from = await go();
    } else if (!stat?.isFile() && !stat?.isFIFO())
      throw invalidEntry(name, 'is a link to what is no file in the directory');
    await this.#own.checkNames(stat);
    const aside = this.#nextAside();
    linkSync(from.at(target_name as BytePath), aside);
    await this.#place(aside, names);
  }

  /** Returns the bytes of its content. */
  async #file(entry: ArchiveEntry, names: BytePath[]): Promise<number> {
    const replaced = this.#copy && (await this.#replaced(names));
    const mode = this.#modeOf(replaced ?? entry, names);
    const aside = this.#nextAside();
    const bytes = await makeFile(aside, entry, mode, replaced);
    await this.#place(aside, names);
    return bytes;
  }

  /** The file that is there, which the account must be allowed to write. */
  async #replaced(names: readonly BytePath[]): Promise<Stats | null> {
    const directory = await this.#inside.directory(names.slice(0, -1));
    const name = names.at(-1) as BytePath;
    const found = lookNow(directory, name);
    if (!found?.isFile()) return null;
    accessSync(directory.at(name), constants.W_OK);
    return found;
  }

  /** The mode of a file, from that of its entry or of the file that it replaces. */
  #modeOf({ mode }: { mode: number }, names: readonly BytePath[]): number {
    if (this.#copy === null) return mode & PERMISSIONS;
    if (this.#copy.is_trusted || (mode & SET_IDS) === 0) return mode & MODE_BITS;
    this.#copy.onLoss({ path: names.join('/'), what: SETS_IDS, is_failure: false });
    return mode & MODE_BITS & ~SET_IDS;
  }

  async #place(aside: string | Buffer, names: BytePath[]): Promise<void> {
    const directory = await this.#inside.directory(names.slice(0, -1));
    const name = names.at(-1) as BytePath;
    await this.#own.checkName(joined(directory.real, name));
    const found = lookNow(directory, name);
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

/** Whether an entry only names what the copy of a tree lacks. */
function isLoss({ type }: ArchiveEntry): boolean {
  return type === JSON.stringify(LEFT_OUT);
}

function isApiError(error: unknown, code: ErrorCode): boolean {
  return error instanceof ApiError && error.code === code;
}

/** What a name is, asked at once. */
function lookNow(directory: Trail, name: BytePath): Stats | undefined {
  return lstatSync(directory.at(name), { throwIfNoEntry: false });
}

/** Sets the times of what a path leads to. Of a negative number, Node makes the present; not of its digits. */
function setTimes(path: string | Buffer, modified_s: number): void {
  if (!Number.isNaN(modified_s)) utimesSync(path, String(modified_s), String(modified_s));
}

/** Sets the times of a name itself. */
function setOwnTimes(path: string | Buffer, modified_s: number): void {
  if (!Number.isNaN(modified_s)) lutimesSync(path, String(modified_s), String(modified_s));
}
