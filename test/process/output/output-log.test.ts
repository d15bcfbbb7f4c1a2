import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OUTPUT_PENDING_ALL_BYTES } from '../../../src/contract/defaults.ts';
import { ChangeSignal } from '../../../src/process/change-signal.ts';
import { OutputLog } from '../../../src/process/output/output-log.ts';

const MIB = 1024 * 1024;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandboxd-log-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Bytes that tell their offset in the stream. */
function bytesAt(offset: number, length: number): Buffer {
  const data = Buffer.alloc(length);
  for (let i = 0; i < length; i++) data[i] = ((offset + i) * 2_654_435_761) >>> 24;
  return data;
}

async function readAll(log: OutputLog, from: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let at = from; at < log.end; ) {
    const read = await log.read(at);
    if ('gone' in read) throw new Error(`gone at ${at}, goes on at ${read.gone}`);
    parts.push(read.data);
    at += read.data.length;
  }
  return Buffer.concat(parts);
}

async function fill(log: OutputLog, from: number, bytes: number, piece = 1_000_003): Promise<void> {
  for (let at = 0; at < bytes; at += piece) {
    log.append(bytesAt(from + at, Math.min(piece, bytes - at)));
    await log.flush();
  }
}

async function diskBytes(): Promise<number> {
  const names = await readdir(folder);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

test('at least the last 8 MiB are kept byte for byte, and never more than 16 MiB on disk', async () => {
  const log = OutputLog.create(folder, 'stdout', new ChangeSignal());
  for (let at = 0; at < 40 * MIB; at += 3 * MIB) {
    await fill(log, at, 3 * MIB);
    expect(log.end).toBe(at + 3 * MIB);
    expect(log.end - log.first).toBeGreaterThanOrEqual(Math.min(log.end, 8 * MIB));
    expect(await diskBytes()).toBeLessThanOrEqual(16 * MIB);
    expect(log.size_bytes).toBe(await diskBytes());
  }
  const kept = await readAll(log, log.first);
  expect(kept.equals(bytesAt(log.first, log.end - log.first))).toBe(true);
  expect(await log.read(log.first - 1)).toEqual({ gone: log.first });
  expect(await log.read(log.end)).toEqual({ data: Buffer.alloc(0) });
  await log.close();
});

test('a log is found again with the same offsets, also after the process was killed between two steps', async () => {
  const log = OutputLog.create(folder, 'stderr', new ChangeSignal());
  await fill(log, 0, 10 * MIB);
  await log.close();
  const found = await OutputLog.load(folder, 'stderr', new ChangeSignal());
  expect([found.first, found.end]).toEqual([log.first, log.end]);
  expect(found.tail.equals(bytesAt(found.end - 2048, 2048))).toBe(true);
  await fill(found, found.end, 1000);
  expect((await readAll(found, found.first)).equals(bytesAt(found.first, found.end - found.first))).toBe(
    true,
  );
  await found.close();
  // Killed after the full file was set aside and before the next was begun.
  const base =
    (await readdir(folder)).flatMap((name) => Number(name.split('.')[1] ?? [])).sort((a, b) => b - a)[0] ?? 0;
  await rename(join(folder, 'stderr'), join(folder, `stderr.${base + 4 * MIB}`));
  const again = await OutputLog.load(folder, 'stderr', new ChangeSignal());
  expect([again.first, again.end]).toEqual([found.first, found.end]);
});

test('there is room for the next batch while one is written, and for no more than that', async () => {
  const log = OutputLog.create(folder, 'stdout', new ChangeSignal());
  log.append(bytesAt(0, 1000));
  await log.whenRoom();
  expect([log.is_writing, log.end]).toEqual([true, 0]);
  log.append(bytesAt(1000, 500));
  await log.whenRoom();
  expect(log.end).toBe(1000);
  await log.flush();
  expect([log.is_writing, log.end]).toEqual([false, 1500]);
  await log.close();
});

test('while too much of all streams waits for the disk no other is read, and afterwards it is', async () => {
  const [writing, other] = ['stdout', 'stderr'].map((stream) =>
    OutputLog.create(folder, stream as 'stdout' | 'stderr', new ChangeSignal()),
  ) as [OutputLog, OutputLog];
  const data = Buffer.alloc(MIB);
  expect(other.is_full).toBe(false);
  for (let bytes = 0; bytes < OUTPUT_PENDING_ALL_BYTES; bytes += MIB) writing.append(data);
  expect(other.is_full).toBe(true);
  await other.whenRoom();
  expect(other.is_full).toBe(false);
  await Promise.all([writing.close(), other.close()]);
});

test('what the disk refuses becomes a gap with exact offsets, and the log goes on after it', async () => {
  const log = OutputLog.create(folder, 'stdout', new ChangeSignal());
  await fill(log, 0, 1000);
  await log.close();
  await rename(folder, `${folder}.away`);
  await fill(log, 1000, 500);
  expect(log.dropped_bytes).toBe(500);
  expect(log.end).toBe(1500);
  expect(await log.read(1000)).toEqual({ gone: 1500 });
  await rename(`${folder}.away`, folder);
  await fill(log, 1500, 300);
  expect(log.end).toBe(1800);
  expect(await log.read(0)).toEqual({ data: bytesAt(0, 1000) });
  expect(await log.read(1200)).toEqual({ gone: 1500 });
  expect(await log.read(1500)).toEqual({ data: bytesAt(1500, 300) });
  await log.close();
  const found = await OutputLog.load(folder, 'stdout', new ChangeSignal());
  expect(found.end).toBe(1800);
  expect(await found.read(1000)).toEqual({ gone: 1500 });
  await mkdir(folder, { recursive: true });
});

test('what is kept can be read at every moment, also while its file is renamed', async () => {
  const log = OutputLog.create(folder, 'stdout', new ChangeSignal());
  const piece = Buffer.alloc(MIB);
  const write = async () => {
    log.append(piece);
    await log.flush();
  };
  const gone: number[] = [];
  let is_over = false;
  const read = async () => {
    while (!is_over) {
      const offset = log.end - piece.length;
      // What is removed meanwhile, because the writer is so far ahead, is not kept.
      if ('gone' in (await log.read(offset, 1)) && offset >= log.first) gone.push(offset);
    }
  };
  await write();
  const readers = [read(), read(), read()];
  for (let written = 0; written < 200; written++) await write();
  is_over = true;
  await Promise.all(readers);
  expect(gone).toEqual([]);
  await log.close();
});
