import type { BytePath } from '../byte-path.ts';

const SPARSE_PART_BYTES = 24;
const SPACE = 0x20;
const ZERO = 0x30;
const SEVEN = 0x37;
const [SUM_AT, SUM_BYTES] = [148, 8];

/** The first block of an entry, as far as it counts. Numbers that make no sense are NaN. */
export interface HeaderBlock {
  name: BytePath;
  /** One character. */
  flag: string;
  link_name: BytePath;
  mode: number;
  /** Bytes of what follows. */
  size: number;
  modified_s: number;
  /** Of a sparse file in GNU's old format. */
  old_sparse: (SparseBlock & { size: number }) | null;
}

/** A part of a sparse file's map in GNU's old format. */
export interface SparseBlock {
  /** Positions and lengths of parts in turn. */
  numbers: number[];
  /** Whether another block of the map follows. */
  is_more: boolean;
}

/** Reads a header of any tar: of Unix version 7, POSIX, or GNU. Null for what is none. */
export function readHeaderBlock(block: Buffer): HeaderBlock | null {
  if (!hasItsSum(block)) return null;
  const magic = block.toString('latin1', 257, 265);
  const prefix = magic.startsWith('ustar\0') ? textAt(block, 345, 155) : '';
  const name = textAt(block, 0, 100);
  const flag = String.fromCharCode(block[156] as number);
  const is_old_sparse = flag === 'S' && magic === 'ustar  \0';
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    flag,
    link_name: textAt(block, 157, 100),
    mode: numberAt(block, 100, 8),
    size: numberAt(block, 124, 12),
    modified_s: numberAt(block, 136, 12),
    old_sparse: is_old_sparse ? { ...sparseBlock(block, 386, 4), size: numberAt(block, 483, 12) } : null,
  };
}

/** A further block of the map of a sparse file in GNU's old format. */
export function readSparseBlock(block: Buffer): SparseBlock {
  return sparseBlock(block, 0, 21);
}

/** A part without its length ends the map, whatever follows; the byte behind the parts says whether it goes on. */
function sparseBlock(block: Buffer, start: number, count: number): SparseBlock {
  const end = start + count * SPARSE_PART_BYTES;
  const numbers: number[] = [];
  for (let at = start; at < end; at += SPARSE_PART_BYTES) {
    if (block[at + 12] === 0) return { numbers, is_more: false };
    numbers.push(numberAt(block, at, 12), numberAt(block, at + 12, 12));
  }
  return { numbers, is_more: block[end] !== 0 };
}

/** Bytes up to the first NUL. */
export function textAt(data: Buffer, at: number, length: number): BytePath {
  const end = data.indexOf(0, at);
  return data.toString('latin1', at, end < 0 ? at + length : Math.min(end, at + length));
}

/** Octal digits; or, of large and negative numbers, the bits themselves behind a first one that is set. */
function numberAt(block: Buffer, at: number, length: number): number {
  const first = block[at] as number;
  const end = at + length;
  if (first & 0x80) {
    let value = (first & 0x3f) - (first & 0x40);
    for (let i = at + 1; i < end; i++) value = value * 256 + (block[i] as number);
    return value;
  }
  let value = 0;
  let i = at;
  while (i < end && block[i] === SPACE) i++;
  for (; i < end; i++) {
    const byte = block[i] as number;
    if (byte === SPACE || byte === 0) break;
    if (byte < ZERO || byte > SEVEN) return Number.NaN;
    value = value * 8 + byte - ZERO;
  }
  return value;
}

/** The sum counts its own field as spaces. Some old programs took bytes for signed ones. */
function hasItsSum(block: Buffer): boolean {
  let sum = SUM_BYTES * SPACE;
  let high = 0;
  for (let i = 0; i < block.length; i++) {
    if (i === SUM_AT) i += SUM_BYTES;
    const byte = block[i] as number;
    sum += byte;
    high += byte >> 7;
  }
  const given = numberAt(block, SUM_AT, SUM_BYTES);
  return given === sum || given === sum - 256 * high;
}
