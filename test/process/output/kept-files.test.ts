import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findSegments, readAt, sliceParts } from '../../../src/process/output/kept-files.ts';
import { scratchFolder } from '../../support/scratch.ts';

test('the parts of a batch are its bytes, and share its memory', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 12 });
  const count = fc.integer({ min: 0, max: 200 });
  fc.assert(
    fc.property(pieces, count, count, (arrays, from, max_bytes) => {
      const batch = arrays.map((array) => Buffer.from(array));
      const parts = sliceParts(batch, from, max_bytes);
      const whole = Buffer.concat(batch);
      expect(Buffer.concat(parts).equals(whole.subarray(from, from + max_bytes))).toBe(true);
      const memory = new Set<ArrayBufferLike>(batch.map(({ buffer }) => buffer));
      expect(parts.every(({ buffer, length }) => memory.has(buffer) && length > 0)).toBe(true);
    }),
  );
});

test('a batch of more pieces than one write takes is cut between two of them', () => {
  const batch = Array.from({ length: 1_500 }, (_, i) => Buffer.from([i % 256]));
  expect(sliceParts(batch, 0, 10_000)).toHaveLength(1_024);
});

test('bytes are read at a position of a regular file, and nothing else is opened', async () => {
  const folder = scratchFolder();
  const path = (name: string) => join(folder, name);
  writeFileSync(path('file'), '0123456789');
  expect(String(await readAt(path('file'), 4, 3))).toBe('456');
  expect(String(await readAt(path('file'), 8, 10))).toBe('89');
  expect(await readAt(path('file'), 10, 1)).toBeNull();
  symlinkSync('file', path('link'));
  mkdirSync(path('directory'));
  execFileSync('mkfifo', [path('pipe')]);
  for (const name of ['link', 'directory', 'pipe', 'missing'])
    expect(await readAt(path(name), 0, 1)).toBeNull();
});

test('the files of a stream are found by their offsets, oldest first, with the present one last', async () => {
  const folder = scratchFolder();
  for (const [name, size] of [
    ['stdout.1000', 500],
    ['stdout.200', 800],
    ['stdout', 7],
    ['stderr.3', 1],
  ] as const) {
    writeFileSync(join(folder, name), Buffer.alloc(size));
  }
  mkdirSync(join(folder, 'stdout.1'));
  symlinkSync('stdout', join(folder, 'stdout.2'));
  writeFileSync(join(folder, 'stdout.pipe'), 'x');
  const found = await findSegments(folder, 'stdout');
  expect(found.map(({ base, size }) => [base, size])).toEqual([
    [200, 800],
    [1000, 500],
    [1500, 7],
  ]);
  const other = await findSegments(folder, 'stderr');
  expect(other.map(({ base, size }) => [base, size])).toEqual([
    [3, 1],
    [4, 0],
  ]);
  await expect(findSegments(join(folder, 'missing'), 'stdout')).rejects.toMatchObject({ code: 'ENOENT' });
});
