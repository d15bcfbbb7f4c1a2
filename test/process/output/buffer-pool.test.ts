import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OUTPUT_CHUNK_BYTES } from '../../../src/contract/defaults.ts';
import { copyOf, release } from '../../../src/process/output/buffer-pool.ts';

const KIB = 1024;

test('a copy is equal to what was copied, whatever was copied and released before', () => {
  const sizes = fc.array(fc.integer({ min: 0, max: OUTPUT_CHUNK_BYTES }), { maxLength: 20 });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 0, max: 255 }), (lengths, first) => {
      const held = lengths.map((length, i) => {
        const bytes = Buffer.alloc(length, (first + i) % 256);
        const copy = copyOf(bytes);
        if (i % 3 === 0) release(copy);
        return i % 3 === 0 ? null : { bytes, copy };
      });
      for (const each of held) expect(each === null || each.bytes.equals(each.copy)).toBe(true);
    }),
  );
});

test('a copy stays as it is when the original changes', () => {
  for (const size of [1, 8 * KIB, OUTPUT_CHUNK_BYTES]) {
    const bytes = Buffer.alloc(size, 'a');
    const copy = copyOf(bytes);
    bytes.fill('b');
    expect(copy.equals(Buffer.alloc(size, 'a'))).toBe(true);
  }
});

test('a released chunk is used again, and a small buffer or that of somebody else is not', () => {
  const chunk = copyOf(Buffer.alloc(8 * KIB));
  release(chunk);
  expect(copyOf(Buffer.alloc(9 * KIB)).buffer).toBe(chunk.buffer);
  const small = copyOf(Buffer.alloc(100));
  release(small);
  const other = Buffer.alloc(16 * KIB);
  release(other);
  const next = copyOf(Buffer.alloc(8 * KIB));
  expect([small.buffer, other.buffer]).not.toContain(next.buffer);
});
