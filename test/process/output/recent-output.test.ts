import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OUTPUT_RECENT_BYTES } from '../../../src/contract/defaults.ts';
import { RecentOutput } from '../../../src/process/output/recent-output.ts';

/** Bytes that tell their offset in the stream. */
function bytesAt(offset: number, length: number): Buffer {
  const data = Buffer.alloc(length);
  for (let i = 0; i < length; i++) data[i] = ((offset + i) * 2_654_435_761) >>> 24;
  return data;
}

test('the newest bytes are read back right at every offset, and none but them', () => {
  const piece = fc.integer({ min: 1, max: OUTPUT_RECENT_BYTES + 70_000 });
  const view = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 1, max: 70_000 }));
  const run = (start: number, lengths: number[], reads: [number, number][]) => {
    const recent = new RecentOutput();
    recent.follow(start);
    let end = start;
    for (const length of lengths) {
      recent.add(bytesAt(end, length));
      end += length;
      const first = Math.max(start, end - OUTPUT_RECENT_BYTES);
      for (const [share, size] of reads) {
        const offset = first + Math.floor(share * (end - first - 1));
        const target = Buffer.alloc(size);
        const count = recent.read(offset, target);
        expect(count).toBe(Math.min(size, end - offset));
        expect(target.subarray(0, count).equals(bytesAt(offset, count))).toBe(true);
      }
      for (const offset of [first - 1, end]) expect(recent.read(offset, Buffer.alloc(1))).toBe(0);
    }
  };
  const lengths = fc.array(piece, { minLength: 1, maxLength: 4 });
  const reads = fc.array(view, { minLength: 1, maxLength: 3 });
  fc.assert(fc.property(fc.nat(3_000_000), lengths, reads, run), { numRuns: 20 });
});

test('nothing is kept once the last follower has left', () => {
  const recent = new RecentOutput();
  const leave = [recent.follow(0), recent.follow(0)];
  recent.add(bytesAt(0, 100));
  leave[0]?.();
  expect(recent.read(0, Buffer.alloc(200))).toBe(100);
  leave[1]?.();
  recent.add(bytesAt(100, 100));
  expect(recent.read(100, Buffer.alloc(200))).toBe(0);
});
