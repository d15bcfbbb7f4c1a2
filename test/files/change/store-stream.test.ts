import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { storeStream } from '../../../src/files/change/store-stream.ts';
import { scratchFolder } from '../../support/scratch.ts';

const never = new AbortController().signal;

test('a stored stream frees each piece of its own, and leaves memory that others share', async () => {
  const path = join(scratchFolder(), 'file');
  await using file = await open(path, 'w');
  const whole = Array.from({ length: 3 }, (_, i) => Buffer.alloc(100_000, `${i}`));
  const shared = Buffer.alloc(200_000, 'x');
  const pieces = [...whole, shared.subarray(0, 50_000)];
  const expected = Buffer.concat(pieces);
  expect(await storeStream(Readable.from(pieces), file, never)).toBe(350_000);
  expect((await readFile(path)).equals(expected)).toBe(true);
  expect(whole.map(({ length }) => length)).toEqual([0, 0, 0]);
  expect(shared.every((byte) => byte === 'x'.charCodeAt(0))).toBe(true);
  expect(shared.length).toBe(200_000);
});
