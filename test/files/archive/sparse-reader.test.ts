import { expect, it } from 'vitest';
import { SparseReader } from '../../../src/files/archive/sparse-reader.ts';

const BLOCK_BYTES = 512;

/** The content of a sparse file: its map, filled up to a block, and its data. */
function contentOf(ranges: readonly (readonly [position: number, length: number])[], data: string): Buffer {
  const map = [ranges.length, ...ranges.flat()].map((number) => `${number}\n`).join('');
  const padded = Math.ceil(map.length / BLOCK_BYTES) * BLOCK_BYTES;
  return Buffer.concat([Buffer.from(map.padEnd(padded, '\0')), Buffer.from(data)]);
}

function readInPieces(content: Buffer, size: number, piece_bytes: number): [number, string][] {
  const reader = new SparseReader('f', { size, numbers: null });
  const parts: [number, string][] = [];
  for (let at = 0; at < content.length; at += piece_bytes) {
    for (const { position, data } of reader.parts(content.subarray(at, at + piece_bytes))) {
      const last = parts.at(-1);
      if (last && last[0] + last[1].length === position) last[1] += data.toString();
      else parts.push([position, data.toString()]);
    }
  }
  reader.end();
  return parts;
}

it('a sparse file is read alike however its content is cut', () => {
  const ranges = [[0, 0], [3, 4], [7, 0], [7, 2], [20, 5], [30, 0]] as const; // biome-ignore format: a map is a line
  const content = contentOf(ranges, 'abcdefghijk');
  for (const bytes of [1, 2, 7, 511, 512, 513, 10_000]) {
    expect(readInPieces(content, 30, bytes)).toEqual([
      [3, 'abcdef'],
      [20, 'ghijk'],
    ]);
  }
});

it('parts without data are no parts, however many a map has', () => {
  const none = Array.from({ length: 249_999 }, () => [0, 0] as const);
  const content = contentOf([...none, [5, 1]], 'x');
  const reader = new SparseReader('f', { size: 6, numbers: null });
  let pieces = 0;
  for (let at = 0; at < content.length; at += 16_384) {
    pieces += reader.parts(content.subarray(at, at + 16_384)).length;
  }
  reader.end();
  expect(pieces).toBe(1);
});

it.each([
  ['parts that overlap', contentOf([[0, 4], [2, 4]], 'abcdefgh')], // biome-ignore format: a map is a line
  ['a part beyond the end', contentOf([[8, 4]], 'abcd')],
  ['no number', Buffer.from('x\n')],
  ['an empty number', Buffer.from('\n')],
  ['an endless number', Buffer.from('1'.repeat(100))],
  ['an endless map', Buffer.from(`400000\n${'0\n0\n'.repeat(300_000)}`)],
  ['too much data', contentOf([[0, 1]], 'ab')],
  ['too little data', contentOf([[0, 2]], 'a')],
  ['no data', Buffer.alloc(0)],
])('a map that makes no sense is refused: %s', (_, content) => {
  expect(() => readInPieces(content, 10, 1_000)).toThrow(/map makes no sense/);
});
