import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

const PAGE_BYTES = 4_096;
/** Pages that are read at a time. */
const PAGES_AT_ONCE = 256;
/** SQLite's file format, sections 1.6 and 4.1: an inner page of a table, its head, and the heads of a log and its frames. */
const INNER_PAGE = 0x05;
const CELLS_OFFSET = 3;
const INNER_HEAD_BYTES = 12;
const LOG_HEAD_BYTES = 32;
const FRAME_HEAD_BYTES = 24;

/**
 * Ids with which a leaf of a table may begin, ascending: as the inner pages say that are in a database or its log, whatever
 * table they are of. Only hints: some are of pages that are no longer used. Throws where the disk is in trouble.
 */
export function leafBoundaries(path: string): number[] {
  const ids = new Set<number>();
  eachPage(path, 0, 0, (page) => addKeys(page, ids));
  eachPage(`${path}-wal`, LOG_HEAD_BYTES, FRAME_HEAD_BYTES, (page) => addKeys(page, ids));
  return [...ids].sort((a, b) => a - b);
}

/** Calls `onPage` with every whole page of a file that has `skip` bytes before the first and `head` before each. */
function eachPage(path: string, skip: number, head: number, onPage: (page: Buffer) => void): void {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  try {
    if (!fstatSync(file).isFile()) return;
    const step = head + PAGE_BYTES;
    const pages = Buffer.alloc(PAGES_AT_ONCE * step);
    for (let at = skip; ; at += pages.length) {
      const read = readSync(file, pages, 0, pages.length, at);
      for (let page = 0; page + step <= read; page += step) onPage(pages.subarray(page + head, page + step));
      if (read < pages.length) return;
    }
  } finally {
    closeSync(file);
  }
}

/** Adds the ids after the last ones of the pages below an inner page. */
function addKeys(page: Buffer, ids: Set<number>): void {
  if (page[0] !== INNER_PAGE) return;
  const cells = page.readUInt16BE(CELLS_OFFSET);
  for (let cell = 0; cell < cells; cell++) {
    const pointer = INNER_HEAD_BYTES + 2 * cell;
    if (pointer + 2 > page.length) return;
    const id = integerAt(page, page.readUInt16BE(pointer) + 4);
    if (id !== null) ids.add(id + 1);
  }
}

/** An integer of variable length, as far as a number holds it; null for any other. */
function integerAt(page: Buffer, start: number): number | null {
  let value = 0;
  // Of more bytes it is negative, or larger.
  for (let at = start; at < start + 8; at++) {
    const byte = page[at];
    if (byte === undefined) return null;
    value = value * 128 + (byte & 0x7f);
    if ((byte & 0x80) === 0) return value < Number.MAX_SAFE_INTEGER ? value : null;
  }
  return null;
}
