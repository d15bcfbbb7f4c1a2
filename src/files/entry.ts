import type { Stats } from 'node:fs';
import { ApiError } from '../contract/errors.ts';
import type { FileEntry, FileType } from '../contract/files.ts';
import type { AccountNames } from './accounts.ts';
import { type BytePath, pathFields, shownBytes } from './byte-path.ts';
import { O_PATH, open, readlink } from './calls.ts';
import { checkedPathOf, type Directory } from './directory.ts';
import { modeText } from './mode.ts';
import type { OwnPlaces } from './own-places.ts';

/** A name to describe. */
export interface Described {
  directory: Directory;
  name: BytePath;
  /** As answers show it. */
  path: BytePath;
  /** What the name itself is: of a link, the link. */
  stat: Stats;
}

/**
 * Describes a name in a directory as `stat` and `list` show it. With `forbidden: 'throw'` a link into the daemon's own
 * places is refused; otherwise it is shown like one that leads nowhere. Throws the system's error.
 */
export async function describeEntry(
  { directory, name, path, stat }: Described,
  names: AccountNames,
  own: OwnPlaces,
  forbidden: 'throw' | 'hide',
): Promise<FileEntry> {
  if (!stat.isSymbolicLink()) return entryOf(path, stat, null, names);
  const [link_target, target] = await Promise.all([
    readlink(directory.at(name)),
    targetOf(directory.at(name), own, forbidden),
  ]);
  return entryOf(path, target ?? stat, link_target, names);
}

/** What a link leads to; null if that cannot be seen. */
async function targetOf(
  path: string | Buffer,
  own: OwnPlaces,
  forbidden: 'throw' | 'hide',
): Promise<Stats | null> {
  try {
    await using handle = await open(path, O_PATH);
    const stat = await handle.stat();
    await checkedPathOf(handle, stat, own);
    return stat;
  } catch (error) {
    if (error instanceof ApiError && forbidden === 'throw') throw error;
    return null;
  }
}

/** The entry of a path; `link_target` is null unless it is a link. */
export function entryOf(
  path: BytePath,
  stat: Stats,
  link_target: BytePath | null,
  names: AccountNames,
): FileEntry {
  return {
    name: shownBytes(path.slice(path.lastIndexOf('/') + 1) || '/').text,
    ...pathFields(path),
    type: typeOf(stat),
    size: stat.size,
    mode: modeText(stat.mode),
    mod_time: rfc3339(stat.mtimeMs),
    is_link: link_target !== null,
    link_target: link_target === null ? null : shownBytes(link_target).text,
    uid: stat.uid,
    gid: stat.gid,
    user: names.user(stat.uid),
    group: names.group(stat.gid),
  };
}

function typeOf(stat: Stats): FileType {
  if (stat.isFile()) return 'file';
  if (stat.isDirectory()) return 'dir';
  return stat.isSymbolicLink() ? 'symlink' : 'other';
}

const LAST_MS = 253_402_300_799_999;
const FIRST_MS = -62_135_596_800_000;
const SECOND_MS = 1_000;

/** The text of a second: files that were made together share it, and it costs as much as the rest of an entry. */
let known = { second: Number.NaN, text: '' };

/** Files may bear any time; one that no calendar shows becomes the nearest that is shown. */
function rfc3339(time_ms: number): string {
  const shown_ms = Math.min(Math.max(Math.floor(time_ms), FIRST_MS), LAST_MS);
  const second = Math.floor(shown_ms / SECOND_MS);
  if (second !== known.second) {
    known = { second, text: new Date(second * SECOND_MS).toISOString().slice(0, -'000Z'.length) };
  }
  return `${known.text}${String(shown_ms - second * SECOND_MS).padStart(3, '0')}Z`;
}
