import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  OUTPUT_CHUNK_BYTES,
  OUTPUT_RECENT_ALL_BYTES,
  OUTPUT_RECENT_BYTES,
} from '../../../src/contract/defaults.ts';
import { ReadMemory, release } from '../../../src/process/output/buffer-pool.ts';
import { RecentOutput } from '../../../src/process/output/recent-output.ts';

/** Bytes that tell their offset in the stream. */
function bytesAt(offset: number, length: number): Buffer {
  const data = Buffer.alloc(length);
  for (let i = 0; i < length; i++) data[i] = ((offset + i) * 2_654_435_761) >>> 24;
  return data;
}

test('the newest bytes are read back right at every offset, whether they are shared or copied', () => {
  const pieces = fc.array(fc.integer({ min: 1, max: OUTPUT_CHUNK_BYTES }), { minLength: 1, maxLength: 40 });
  const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 3 });
  const run = (start: number, lengths: number[], whole: boolean, reads: number[]) => {
    const recent = new RecentOutput();
    const memory = new ReadMemory();
    const leave = recent.follow(start);
    let end = start;
    for (const length of lengths) {
      const data = memory.copyOf(bytesAt(end, whole ? OUTPUT_CHUNK_BYTES : length));
      recent.add(data);
      end += data.length;
      release(data);
      const first = Math.max(start, end - OUTPUT_RECENT_BYTES);
      for (const share of reads) {
        const offset = first + Math.floor(share * (end - first - 1));
        const found = recent.at(offset) as Buffer;
        expect(found.length).toBeGreaterThan(0);
        expect(found.equals(bytesAt(offset, found.length))).toBe(true);
        expect(offset + found.length).toBeLessThanOrEqual(end);
      }
      expect(recent.at(end)).toBe(null);
    }
    leave();
    memory.leave();
  };
  fc.assert(fc.property(fc.nat(3_000_000), pieces, fc.boolean(), shares, run), { numRuns: 30 });
});

test('memory holds little more than the newest bytes, however small the pieces are', () => {
  const recent = new RecentOutput();
  const leave = recent.follow(0);
  const piece = OUTPUT_CHUNK_BYTES / 4 + 1;
  for (let at = 0; at < 4 * OUTPUT_RECENT_BYTES; at += piece) recent.add(bytesAt(at, piece));
  expect(recent.at(2 * OUTPUT_RECENT_BYTES)).toBe(null);
  expect(recent.at(3 * OUTPUT_RECENT_BYTES + piece)).not.toBe(null);
  leave();
});

test('nothing is kept once the last follower has left', () => {
  const recent = new RecentOutput();
  const leave = [recent.follow(0), recent.follow(0)];
  recent.add(bytesAt(0, 100));
  leave[0]?.();
  expect(recent.at(0)?.length).toBe(100);
  leave[1]?.();
  recent.add(bytesAt(100, 100));
  expect(recent.at(100)).toBe(null);
  recent.follow(200);
  recent.add(bytesAt(200, 100));
  expect(recent.at(150)).toBe(null);
  expect(recent.at(200)?.equals(bytesAt(200, 100))).toBe(true);
});

test('many followed streams together keep little of each, and one alone much again', () => {
  const data = bytesAt(0, OUTPUT_CHUNK_BYTES);
  const fill = (recent: RecentOutput) => {
    for (let bytes = 0; bytes < 2 * OUTPUT_RECENT_BYTES; bytes += data.length) recent.add(data);
  };
  const all = Array.from(
    { length: (2 * OUTPUT_RECENT_ALL_BYTES) / OUTPUT_RECENT_BYTES },
    () => new RecentOutput(),
  );
  const leave = all.map((recent) => recent.follow(0));
  for (const recent of all) fill(recent);
  const last = all.at(-1) as RecentOutput;
  expect(last.at(OUTPUT_RECENT_BYTES)).toBe(null);
  expect(last.at(2 * OUTPUT_RECENT_BYTES - 1)).not.toBe(null);
  for (const end of leave) end();
  const end = last.follow(0);
  fill(last);
  expect(last.at(OUTPUT_RECENT_BYTES)).not.toBe(null);
  end();
});
