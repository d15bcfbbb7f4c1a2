import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { ApiError } from '../../../src/contract/errors.ts';
import { packPath } from '../../../src/files/archive/pack.ts';
import { unpackArchive } from '../../../src/files/archive/unpack.ts';
import { NameLocks } from '../../../src/files/change/name-locks.ts';
import { removePath } from '../../../src/files/change/remove.ts';
import { UploadJournal } from '../../../src/files/change/upload-journal.ts';
import { OwnPlaces } from '../../../src/files/own-places.ts';
import type { Random } from '../random.ts';
import { IS_ROOT } from '../rights.ts';
import { scratchFolder } from '../scratch.ts';
import { countCalls } from './counted-calls.ts';
import { changed, type GivenEntry, tarOf } from './tar-entries.ts';

const BLOCK_BYTES = 512;
/**
 * Calls that a request costs at most: in any case, for each block of an archive, and for each level that its names have. A link
 * is a block, and may be looked at eight times.
 */
const CALLS = { always: 200, per_block: 64, per_level: 15 };
const NAMES = ['a', 'b', 'c', 'x', 'y', 'none'];

/** Unpacks, packs and removes archives of random shapes; asserts that each costs what it is worth, and stays inside. */
export async function fuzzArchives(
  random: Random,
  count: number,
): Promise<{ unpacked: number; refused: number }> {
  const folder = scratchFolder();
  const top = join(folder, 'top');
  const journal = new UploadJournal(join(folder, 'journal'));
  const own = new OwnPlaces([]);
  const counted = countCalls();
  const outcome = { unpacked: 0, refused: 0 };
  const { signal } = new AbortController();
  writeFileSync(join(folder, 'canary'), 'mine');
  for (let i = 0; i < count; i++) {
    mkdirSync(top);
    const { archive, levels } = await archiveOf(random);
    const body = damaged(random.chance(0.3) ? gzipSync(archive) : archive, random);
    Object.assign(counted, { calls: 0, written_bytes: 0 });
    await unpackArchive(
      { path: top, data: piecesOf(body, random), copy: null, signal },
      { own, journal },
    ).then(
      () => {
        outcome.unpacked += 1;
      },
      (error) => {
        expect(error, `archive ${i}`).toBeInstanceOf(ApiError);
        outcome.refused += 1;
      },
    );
    expect(counted.calls, `calls of archive ${i}`).toBeLessThan(worthOf(archive.length, levels));
    expect(counted.written_bytes).toBeLessThanOrEqual(archive.length);
    checkInside(folder, top);
    Object.assign(counted, { calls: 0 });
    let packed_bytes = 0;
    for await (const piece of await packPath(top, { own, signal, copy: null })) packed_bytes += piece.length;
    expect(counted.calls).toBeLessThan(worthOf(packed_bytes, levels));
    Object.assign(counted, { calls: 0 });
    await removePath({ path: top, recursive: true, signal }, { own, locks: new NameLocks() });
    expect(counted.calls).toBeLessThan(worthOf(packed_bytes, levels));
  }
  await journal.close();
  return outcome;
}

function worthOf(bytes: number, levels: number): number {
  return CALLS.always + (CALLS.per_block * bytes) / BLOCK_BYTES + CALLS.per_level * levels;
}

/** Nothing is aside, nothing has changed outside, and no link leads there. */
function checkInside(folder: string, top: string): void {
  expect(readdirSync(folder).sort()).toEqual(['canary', 'journal', 'top']);
  expect(readFileSync(join(folder, 'canary'), 'utf8')).toBe('mine');
  expect(readdirSync(join(folder, 'journal'))).toEqual([]);
  // Damage may give a name any bytes.
  const look = (directory: Buffer) => {
    for (const name of readdirSync(directory, 'buffer')) {
      const path = Buffer.concat([directory, Buffer.from('/'), name]);
      const stat = lstatSync(path);
      expect(name.toString()).not.toMatch(/^\.sandboxd/);
      if (stat.isDirectory()) look(path);
      else if (stat.isSymbolicLink()) expect(`${realOf(path) ?? top}/`, String(path)).toContain(`${top}/`);
    }
  };
  look(Buffer.from(top));
}

function realOf(path: Buffer): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

/** Nobody but root can read what its owner may not. */
const OWNERS = IS_ROOT ? 0 : 0o600;

/** An archive, and how many levels all of its names have together. */
async function archiveOf(random: Random): Promise<{ archive: Buffer; levels: number }> {
  const deep = random.chance(0.1) ? 1 + random.below(420) : 1 + random.below(5);
  let levels = 0;
  const name = () => {
    const names = Array.from({ length: 1 + random.below(deep) }, () => random.pick(NAMES));
    levels += names.length;
    return names.join(random.pick(['/', '//', '/./']));
  };
  const target = () => {
    const steps = Array.from({ length: 1 + random.below(6) }, () => random.pick([...NAMES, '..', '..', '.']));
    return (random.chance(0.1) ? '/' : '') + steps.join('/');
  };
  const entry = (): GivenEntry => {
    const kind = random.below(10);
    if (kind < 3) return `${name()}/`;
    if (kind < 6) return `${name()} -> ${target()}`;
    if (kind < 7) return `${name()} = ${random.chance(0.8) ? name() : target()}`;
    if (kind < 8) return sparse(random, name());
    if (kind < 9) return [{ name: name(), mode: random.below(0o10000) | OWNERS, pax: records(random) }, ''];
    return [{ name: name() }, Buffer.alloc(random.below(3_000), 'x')];
  };
  const archive = await tarOf(Array.from({ length: random.below(random.chance(0.05) ? 300 : 20) }, entry));
  if (random.chance(0.85)) return { archive, levels };
  // What follows the end of an archive is another one.
  const parts = [archive, await oldSparse(random, name())];
  return { archive: Buffer.concat(random.chance(0.5) ? parts : parts.reverse()), levels };
}

function records(random: Random): Record<string, string> {
  const count = random.chance(0.05) ? 1_100 : random.below(5);
  return Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`A.${i}`, 'x'.repeat(random.below(30))]),
  );
}

/** A sparse file in one of GNU's formats for extended headers, often one that makes no sense. */
function sparse(random: Random, name: string): GivenEntry {
  const { numbers, data_bytes, size } = mapOf(random);
  const data = 'd'.repeat(random.chance(0.1) ? random.below(100) : data_bytes);
  if (random.chance(0.3)) {
    const records = { 'GNU.sparse.name': name, 'GNU.sparse.size': String(size) };
    return [{ name: 'f', pax: { ...records, 'GNU.sparse.map': numbers.join(',') } }, data];
  }
  const map = [numbers.length / 2, ...numbers].map((each) => `${each}\n`).join('');
  const padded = map.padEnd(Math.ceil(map.length / BLOCK_BYTES) * BLOCK_BYTES, '\0');
  const pax = {
    'GNU.sparse.major': '1',
    'GNU.sparse.minor': '0',
    'GNU.sparse.name': name,
    'GNU.sparse.realsize': String(size),
  };
  return [{ name: 'GNUSparseFile.0/f', pax }, padded + data];
}

/** A sparse file in GNU's old format, whose map is in blocks of numbers. */
async function oldSparse(random: Random, name: string): Promise<Buffer> {
  const { numbers, data_bytes, size } = mapOf(random);
  const octal = (value: number) => `${value.toString(8).padStart(11, '0')}\0`;
  const parts = numbers.map(octal);
  const first = parts.splice(0, 8).join('').padEnd(96, '\0');
  const blocks: string[] = [];
  while (parts.length > 0) blocks.push(parts.splice(0, 42).join('').padEnd(504, '\0'));
  const lied = random.chance(0.1);
  const more = blocks.map((block, i) => `${block}${i < blocks.length - 1 || lied ? '\x01' : '\0'}`);
  const data = 'd'.repeat(random.chance(0.1) ? random.below(100) : data_bytes);
  const plain = await tarOf([[{ name: name.slice(0, 90) }, data]]);
  const is_more = blocks.length > 0 || lied ? '\x01' : '\0';
  const fields = `ustar  \0${'\0'.repeat(121)}${first}${is_more}${octal(size)}`;
  const header = changed(changed(plain, 257, fields), 156, 'S').subarray(0, BLOCK_BYTES);
  const map = Buffer.from(more.map((each) => each.padEnd(BLOCK_BYTES, '\0')).join(''), 'latin1');
  return Buffer.concat([header, map, plain.subarray(BLOCK_BYTES)]);
}

/** Positions and lengths of a sparse file's parts in turn. */
function mapOf(random: Random): { numbers: number[]; data_bytes: number; size: number } {
  const numbers: number[] = [];
  let data_bytes = 0;
  let at = 0;
  for (let i = random.below(random.chance(0.05) ? 5_000 : 20); i > 0; i--) {
    const length = random.chance(0.5) ? 0 : random.below(50);
    at += random.below(3);
    numbers.push(random.chance(0.002) ? 0 : at, length);
    at += length;
    data_bytes += length;
  }
  return { numbers, data_bytes, size: random.chance(0.9) ? at : random.below(1_000) };
}

function damaged(body: Buffer, random: Random): Buffer {
  if (random.chance(0.1)) return body.subarray(0, random.below(body.length));
  if (random.chance(0.1)) body[random.below(body.length)] = random.below(256);
  return body;
}

async function* piecesOf(body: Buffer, random: Random): AsyncGenerator<Buffer, void> {
  const bytes = 1 + random.below(random.chance(0.1) ? 600 : 65_536);
  for (let at = 0; at < body.length; at += bytes) yield Buffer.from(body.subarray(at, at + bytes));
}
