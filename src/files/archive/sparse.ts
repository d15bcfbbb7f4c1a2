import { readSync, type Stats } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ByteRange } from '../byte-range.ts';
import { FileShrunk } from '../file-error.ts';
import { padding } from './tar-header.ts';

/** What is zero for this long is left out. */
const HOLE_BYTES = 64 * 1024;
const CHUNK_BYTES = 16 * HOLE_BYTES;
const ZEROS = Buffer.alloc(HOLE_BYTES);
const DISK_BLOCK_BYTES = 512;
/** Further holes are sent as zeros: the map stays below 1 MiB. */
const RANGES_MAX = 30_000;

/** Whether a file takes so much less space than its size that it has holes. */
export function isSparse({ size, blocks }: Stats): boolean {
  return size - blocks * DISK_BLOCK_BYTES >= HOLE_BYTES;
}

/** The parts of a file that are not zero. Reads all of it: Node cannot ask for its holes. Throws the system's error. */
export async function dataRanges(fd: number, size: number, signal: AbortSignal): Promise<ByteRange[]> {
  const ranges: ByteRange[] = [];
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  for (let start = 0; start < size; ) {
    // Others may be waiting, and nothing is sent meanwhile that would tell of a client that has gone.
    await nextTurn();
    signal.throwIfAborted();
    const length = readSync(fd, chunk, 0, Math.min(CHUNK_BYTES, size - start), start);
    if (length === 0) throw new FileShrunk();
    for (let at = 0; at < length; at += HOLE_BYTES) {
      const end = Math.min(at + HOLE_BYTES, length);
      if (chunk.compare(ZEROS, 0, end - at, at, end) === 0) continue;
      const last = ranges.at(-1);
      if (last && (last.end === start + at || ranges.length === RANGES_MAX)) last.end = start + end;
      else ranges.push({ start: start + at, end: start + end });
    }
    start += length;
  }
  return ranges;
}

/** The map of a sparse file in GNU's format 1.0, which precedes its data. */
export function sparseMap(ranges: readonly ByteRange[], size: number): Buffer {
  // A part without length at the end says how long the file is.
  const parts = [...ranges, { start: size, end: size }];
  const numbers = [parts.length, ...parts.flatMap(({ start, end }) => [start, end - start])];
  const text = Buffer.from(numbers.map((number) => `${number}\n`).join(''));
  return Buffer.concat([text, padding(text.length)]);
}

/** The records that make an entry a sparse file. */
export function sparseRecords(name: string, size: number): Record<string, string> {
  return {
    'GNU.sparse.major': '1',
    'GNU.sparse.minor': '0',
    'GNU.sparse.name': name,
    'GNU.sparse.realsize': String(size),
  };
}
