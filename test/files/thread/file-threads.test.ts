import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { ApiError } from '../../../src/contract/errors.ts';
import { UploadJournal } from '../../../src/files/change/upload-journal.ts';
import { FileThreads } from '../../../src/files/thread/file-threads.ts';
import { eventually } from '../../support/eventually.ts';
import { scratchFolder } from '../../support/scratch.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
const open: { threads: FileThreads; journal: UploadJournal }[] = [];

afterEach(async () => {
  for (const { threads, journal } of open.splice(0)) {
    await threads.stop();
    await journal.close();
  }
});

function fileThreads(): { threads: FileThreads; folder: string } {
  const folder = scratchFolder();
  const journal = new UploadJournal(join(scratchFolder(), 'uploads'));
  const threads = new FileThreads({ clock: systemClock, own_paths: [], journal });
  open.push({ threads, journal });
  return { threads, folder };
}

async function failureOf(work: Promise<unknown>): Promise<ApiError> {
  const error = await work.then(
    () => null,
    (failure) => failure,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error;
}

describe('a thread for files', () => {
  test('gives a list as JSON', async () => {
    const { threads, folder } = fileThreads();
    writeFileSync(join(folder, 'a'), 'content');
    const page = JSON.parse(Buffer.from(await threads.list({ path: folder, depth: 1, limit: 5 })).toString());
    expect(page).toMatchObject({ path: folder, entries: [{ name: 'a', size: 7 }], next_cursor: null });
  });

  test('unpacks what another has packed, piece by piece', async () => {
    const { threads, folder } = fileThreads();
    const [from, to] = [join(folder, 'from'), join(folder, 'to')];
    mkdirSync(from);
    const big = Buffer.alloc(3 * MIB + 1, 'abc');
    writeFileSync(join(from, 'big'), big);
    for (let i = 0; i < 200; i++) writeFileSync(join(from, `${i}`), String(i));
    const archive = await threads.pack(from, never);
    const unpacked = await threads.unpack(to, Readable.from(archive, { objectMode: false }), never);
    expect(unpacked).toEqual({ entries: 201, bytes: big.length + 10 + 180 + 300 });
    expect(readFileSync(join(to, 'big')).equals(big)).toBe(true);
    expect(readFileSync(join(to, '199'), 'utf8')).toBe('199');
  });

  test('fails as the work itself does, and goes on', async () => {
    const { threads, folder } = fileThreads();
    writeFileSync(join(folder, 'file'), '');
    const missing = await failureOf(threads.pack(join(folder, 'missing'), never));
    expect(missing).toMatchObject({ code: 'not_found', details: { path: join(folder, 'missing') } });
    const wrong = await failureOf(threads.unpack(folder, Readable.from([Buffer.alloc(600, 'x')]), never));
    expect(wrong).toMatchObject({ code: 'invalid_request', details: { field: 'body' } });
    const archive = await buffer(Readable.from(await threads.pack(join(folder, 'file'), never)));
    expect(archive.length).toBe(3 * 512);
  });

  test('reads no further ahead than a few pieces', async () => {
    const { threads, folder } = fileThreads();
    const file = join(folder, 'file');
    writeFileSync(file, Buffer.alloc(8 * MIB, 'a'));
    const archive = await threads.pack(file, never);
    const pieces = [(await archive.next()).value as Buffer];
    // Whatever has not been read yet is not what it was.
    writeFileSync(file, Buffer.alloc(8 * MIB, 'b'));
    for await (const piece of archive) pieces.push(piece);
    const content = Buffer.concat(pieces).subarray(512, 512 + 8 * MIB);
    expect(content.indexOf('b')).toBeLessThan(4 * MIB);
  });

  test('stops when nobody wants the archive any more, and removes what it has not finished', async () => {
    const { threads, folder } = fileThreads();
    writeFileSync(join(folder, 'file'), Buffer.alloc(8 * MIB));
    const to = join(folder, 'to');
    const gone = new AbortController();
    const endless = new Readable({ read() {} });
    const archive = await buffer(Readable.from(await threads.pack(join(folder, 'file'), never)));
    endless.push(archive.subarray(0, 2 * MIB));
    const work = threads.unpack(to, endless, gone.signal);
    await eventually(() => expect(readdirSync(to)).toHaveLength(1));
    gone.abort();
    expect(await failureOf(work)).toMatchObject({
      code: 'invalid_request',
      message: 'The body was cut off.',
    });
    await eventually(() => expect(readdirSync(to)).toEqual([]));
  });

  test('that ends fails its work, and none is started after the end', async () => {
    const { threads, folder } = fileThreads();
    const to = join(folder, 'to');
    const failed = expect(threads.unpack(to, new Readable({ read() {} }), never)).rejects.toThrow(
      'has ended',
    );
    await eventually(() => expect(readdirSync(to)).toHaveLength(1));
    await threads.stop();
    await failed;
    expect(await failureOf(threads.pack(folder, never))).toMatchObject({ code: 'shutting_down' });
  });
});
