import { lstatSync, readdirSync, type Stats } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { invalidField } from '../contract/errors.ts';
import type { FileEntry, FilePage } from '../contract/files.ts';
import { isTemporaryName } from '../contract/temporary-file.ts';
import { type AccountNames, accountNames } from './accounts.ts';
import { type BytePath, joined, pathFields, systemPath } from './byte-path.ts';
import { Directory } from './directory.ts';
import { describeEntry, entryOf } from './entry.ts';
import { isSystemError } from './file-error.ts';
import type { OwnPlaces } from './own-places.ts';
import { isSettled, stampOf } from './stamp.ts';

/** A page of a directory's tree. */
export interface ListRequest {
  path: BytePath;
  /** How many levels are listed; 1 is the directory's own names. */
  depth: number;
  /** Most entries of the page. */
  limit: number;
  /** From the page before. */
  cursor?: string | undefined;
}

/** What lists use. */
export interface ListParts {
  own: OwnPlaces;
  cache: NameCache;
}

/** How long a directory's names are kept for the next page, in ms. */
const KEEP_MS = 5_000;
/** Fewer are read again as quickly. */
const NAMES_MIN = 1_000;

/** Names looked at together. */
const LOOKS_TOGETHER = 64;

/**
 * Lists a directory, sorted by the bytes of the paths. What is there during the whole listing is listed exactly once, on
 * whatever page; what comes and goes meanwhile may or may not be. A directory below that cannot be read is listed, its
 * names are not. Throws `invalid_request` (cursor), `forbidden` or the system's error.
 */
export async function listDirectory(request: ListRequest, parts: ListParts): Promise<FilePage> {
  const { path, cursor } = request;
  const top = path.replace(/\/+$/, '') || '/';
  const after = cursor === undefined ? '' : cursorPath(cursor);
  await using directory = await Directory.open(systemPath(path), parts.own);
  const page = new Page(request, parts, await accountNames());
  await page.add(directory, { shown: top, relative: '', after, depth: request.depth });
  return { ...pathFields(top), entries: page.entries, next_cursor: page.next_cursor };
}

/** Where a walk is. */
interface Level {
  /** The directory's path as it is shown. */
  shown: BytePath;
  /** The same below the listed directory, with a slash at its end unless it is that directory. */
  relative: BytePath;
  /** Only what comes after this one is listed; relative to the listed directory. */
  after: BytePath;
  depth: number;
}

class Page {
  readonly entries: FileEntry[] = [];
  next_cursor: string | null = null;
  readonly #limit: number;
  readonly #parts: ListParts;
  readonly #names: AccountNames;
  #last: BytePath = '';

  constructor({ limit }: ListRequest, parts: ListParts, names: AccountNames) {
    this.#limit = limit;
    this.#parts = parts;
    this.#names = names;
  }

  /**
   * Adds the names of a directory until the page is full. By their bytes, what is in `a` comes after `a-b`, because `/`
   * does: a directory stands among its siblings twice, as `a` for itself and as `a/` for what is in it.
   */
  async add(directory: Directory, level: Level): Promise<void> {
    const { relative, after } = level;
    const names = await this.#namesOf(directory);
    const inner = level.depth > 1 ? openedBefore(names, relative, after) : [];
    let next = firstAfter(names, relative, after);
    let described: (readonly [BytePath, FileEntry])[] = [];
    while (next < names.length || described.length > 0 || inner.length > 0) {
      if (described.length === 0 && next < names.length) {
        described = await this.#describe(directory, names.slice(next, next + LOOKS_TOGETHER), level);
        next += LOOKS_TOGETHER;
        if (described.length === 0) continue;
      }
      const [opened] = inner;
      if (opened !== undefined && !(described[0] && described[0][0] < `${opened}/`)) {
        inner.shift();
        await this.#descend(directory, opened, level);
      } else if (this.#isFull()) {
        return;
      } else {
        const [name, entry] = described.shift() as readonly [BytePath, FileEntry];
        this.entries.push(entry);
        this.#last = relative + name;
        if (level.depth > 1 && entry.type === 'dir' && !entry.is_link) insert(inner, name);
      }
      if (this.next_cursor !== null) return;
    }
  }

  #isFull(): boolean {
    if (this.entries.length < this.#limit) return false;
    this.next_cursor = Buffer.from(this.#last, 'latin1').toString('base64url');
    return true;
  }

  async #descend(directory: Directory, name: BytePath, level: Level): Promise<void> {
    try {
      await using inside = await directory.enter(name, this.#parts.own);
      const shown = joined(level.shown, name);
      await this.add(inside, {
        ...level,
        shown,
        relative: `${level.relative}${name}/`,
        depth: level.depth - 1,
      });
    } catch (error) {
      if (!isSystemError(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP')) throw error;
    }
  }

  async #namesOf(directory: Directory): Promise<BytePath[]> {
    const known = this.#parts.cache.get(directory.stat);
    if (known) return known;
    const hidden = await this.#parts.own.hides(directory.real);
    const found = readdirSync(directory.at(), 'latin1');
    const names = found.filter((name) => !isTemporaryName(name) && !hidden(name)).sort();
    this.#parts.cache.put(directory.stat, names);
    return names;
  }

  async #describe(
    directory: Directory,
    batch: BytePath[],
    level: Level,
  ): Promise<(readonly [BytePath, FileEntry])[]> {
    const found: (readonly [BytePath, FileEntry])[] = [];
    for (const name of batch) {
      const stat = lstatSync(directory.at(name), { throwIfNoEntry: false });
      if (!stat) continue;
      const path = joined(level.shown, name);
      const entry = stat.isSymbolicLink()
        ? await describeEntry({ directory, name, path, stat }, this.#names, this.#parts.own, 'hide')
        : entryOf(path, stat, null, this.#names);
      found.push([name, entry]);
    }
    return found;
  }
}

/** The names of the large directory that was listed last, so that its pages do not each read and sort all of them. */
export class NameCache {
  readonly #clock: Clock;
  #stamp = '';
  #names: BytePath[] | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The names of this very state of a directory; null if they are not kept. */
  get(directory: Stats): BytePath[] | null {
    return this.#names !== null && this.#stamp === stampOf(directory) ? this.#names : null;
  }

  /** Keeps the names that were read after this state was seen. */
  put(directory: Stats, names: BytePath[]): void {
    if (names.length < NAMES_MIN || !isSettled(directory, this.#clock)) return;
    this.#stamp = stampOf(directory);
    this.#names = names;
    this.#clock.after(KEEP_MS, () => {
      if (this.#names === names) this.#names = null;
    });
  }
}

/** The index of the first name whose path is after a cursor. */
function firstAfter(names: readonly BytePath[], relative: BytePath, after: BytePath): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (relative + names[middle] > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Directories that were listed on an earlier page, while what is in them comes after the cursor. */
function openedBefore(names: readonly BytePath[], relative: BytePath, after: BytePath): BytePath[] {
  if (!after.startsWith(relative)) return [];
  const [first = ''] = after.slice(relative.length).split('/');
  return names
    .filter((name) => first.startsWith(name) && `${relative}${name}/\xff` > after)
    .sort((one, other) => (`${one}/` < `${other}/` ? -1 : 1));
}

function insert(sorted: BytePath[], name: BytePath): void {
  const at = sorted.findIndex((each) => `${each}/` > `${name}/`);
  sorted.splice(at === -1 ? sorted.length : at, 0, name);
}

function cursorPath(cursor: string): BytePath {
  const path = Buffer.from(cursor, 'base64url').toString('latin1');
  const is_whole = cursor !== '' && Buffer.from(path, 'latin1').toString('base64url') === cursor;
  if (!is_whole || path.includes('\0')) throw invalidField('cursor', 'must be that of a page');
  return path;
}
