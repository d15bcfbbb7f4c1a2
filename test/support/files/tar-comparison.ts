import {
  closeSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { execaSync } from 'execa';
import { expect } from 'vitest';
import { ApiError } from '../../../src/contract/errors.ts';
import { unpackArchive } from '../../../src/files/archive/unpack.ts';
import { UploadJournal } from '../../../src/files/change/upload-journal.ts';
import { OwnPlaces } from '../../../src/files/own-places.ts';
import type { Random } from '../random.ts';
import { scratchFolder } from '../scratch.ts';

const FORMATS = ['v7', 'ustar', 'oldgnu', 'gnu', 'posix'];
/** The end of a range of times in seconds whose microseconds a double has. */
const TIME_MAX_S = 4_000_000_000;
const HOLE_BYTES = 8_192;
const ENTRIES = 12;
/** Disk blocks by which two copies of a file differ: its data is contiguous or not. */
const BLOCKS_DIFFERENCE = 16;

/** Archives by outcome. */
export interface Compared {
  equal: number;
  refused: number;
  /** Unpacked here, while tar complains about something that does not count here. */
  unclear: number;
}

/**
 * Has GNU tar pack random trees with random options, damages some of the archives, and asserts that unpacking them gives
 * what tar gives, or an error that names an entry; of an archive without damage always the former.
 */
export async function compareWithTar(random: Random, count: number): Promise<Compared> {
  const folder = scratchFolder();
  const journal = new UploadJournal(join(folder, 'journal'));
  const outcome: Compared = { equal: 0, refused: 0, unclear: 0 };
  for (let i = 0; i < count; i++) {
    const [tree, top, theirs, archive] = ['tree', 'top', 'theirs', 'archive'].map((each) =>
      join(folder, each),
    ) as [string, string, string, string];
    for (const each of [tree, top, theirs]) mkdirSync(each);
    plant(tree, random);
    const options = optionsOf(random, folder);
    const what = `archive ${i}: ${options.join(' ')}`;
    execaSync('tar', [...options, '-cf', archive, '-C', tree, '.'], { reject: false });
    const whole = readFileSync(archive);
    const body = damaged(whole, random);
    writeFileSync(archive, body);
    const tar = execaSync('tar', ['-xpf', archive, '--no-same-owner', '-C', theirs], { reject: false });
    const is_whole = body.equals(whole);
    if (is_whole) expect(tar.exitCode, `${what}: ${tar.stderr}`).toBe(0);
    const data = piecesOf(random.chance(0.2) ? gzipSync(body, { level: 1 }) : body, random);
    const { signal } = new AbortController();
    try {
      await unpackArchive({ path: top, data, copy: null, signal }, { own: new OwnPlaces([]), journal });
      if (!tar.failed) expectSame(top, theirs, what);
      outcome[tar.failed ? 'unclear' : 'equal'] += 1;
    } catch (error) {
      if (is_whole || !(error instanceof ApiError)) throw new Error(what, { cause: error });
      expect(error.message, what).toMatch(/the entry "|at its beginning|must be a tar archive|^\/|is a dir/);
      outcome.refused += 1;
    }
    for (const each of [tree, top, theirs, archive, join(folder, 'snapshot')])
      rmSync(each, { recursive: true, force: true });
  }
  await journal.close();
  return outcome;
}

function optionsOf(random: Random, folder: string): string[] {
  const format = random.pick(FORMATS);
  const options = [`--format=${format}`];
  const is_gnu = format !== 'v7' && format !== 'ustar';
  if (is_gnu && random.chance(0.6)) options.push('-S');
  if (format === 'posix') options.push(`--sparse-version=${random.pick(['0.0', '0.1', '1.0'])}`);
  if (is_gnu && random.chance(0.2)) options.push('-V', 'a label');
  if (is_gnu && random.chance(0.2)) options.push('-g', join(folder, 'snapshot'));
  if (random.chance(0.2)) options.push('--hard-dereference');
  if (random.chance(0.2)) options.push('-b', '1');
  if (format === 'posix' && random.chance(0.2)) options.push('--pax-option=globexthdr.name=g,comment:=x,a=b');
  return options;
}

/** A path of bytes, each of which is a character of `below`. */
function at(top: string, below: string): Buffer {
  return Buffer.from(`${Buffer.from(top).toString('latin1')}/${below}`, 'latin1');
}

/** Makes a few files of all kinds that an archive may bring. */
function plant(top: string, random: Random): void {
  const directories = [''];
  const others: string[] = [];
  for (let i = random.below(ENTRIES); i >= 0; i--) {
    const is_pipe = random.chance(0.05);
    const below = is_pipe ? `p${i}` : random.pick(directories) + nameOf(random);
    const path = at(top, below);
    if (lstatSync(path, { throwIfNoEntry: false })) continue;
    const kind = random.below(10);
    if (kind < 3 && !is_pipe) {
      mkdirSync(path, 0o700 | random.below(0o2000));
      if (below.length < 600) directories.push(`${below}/`);
      continue;
    }
    if (is_pipe) execaSync('mkfifo', [join(top, below)]);
    else if (kind === 3) symlinkSync(Buffer.from(`to${nameOf(random)}`, 'latin1'), path);
    else if (kind === 4 && others.length > 0) linkSync(at(top, random.pick(others)), path);
    else plantFile(path, random);
    others.push(below);
    if (random.chance(0.7)) setTime(path, random);
  }
  for (const below of directories.slice(1)) if (random.chance(0.7)) setTime(at(top, below), random);
}

function setTime(path: Buffer, random: Random): void {
  const time = String((random.next() * 2 - 1) * TIME_MAX_S);
  lutimesSync(path, time, time);
}

function plantFile(path: Buffer, random: Random): void {
  const fd = openSync(path, 'wx', random.below(0o1000));
  if (random.chance(0.6)) writeSync(fd, random.bytes(random.below(2_000)));
  else {
    let position = 0;
    for (let i = random.below(random.chance(0.2) ? 90 : 6); i > 0; i--) {
      position += HOLE_BYTES * random.below(4);
      position += writeSync(fd, random.bytes(1 + random.below(700)), 0, null, position);
    }
    ftruncateSync(fd, position + random.below(50_000));
  }
  closeSync(fd);
}

function nameOf(random: Random): string {
  const kind = random.below(10);
  if (kind < 5) return random.pick(['a', 'b', 'c', 'ä', 'x y', '-x']);
  const length = kind < 8 ? 1 + random.below(20) : 90 + random.below(160);
  const name = kind === 8 ? 'n'.repeat(length) : random.bytes(length).toString('latin1');
  return `n${name.replace(/[\0/]/g, '_')}`;
}

function damaged(body: Buffer, random: Random): Buffer {
  if (random.chance(0.15)) return body.subarray(0, random.below(body.length));
  const copy = Buffer.from(body);
  if (random.chance(0.3)) {
    // Most of an archive is zeros at its end.
    const used = Math.max(
      1,
      body.findLastIndex((byte) => byte !== 0),
    );
    copy[random.below(used)] = random.below(256);
  }
  return copy;
}

async function* piecesOf(body: Buffer, random: Random): AsyncGenerator<Buffer, void> {
  const bytes = 1 + random.below(random.chance(0.2) ? 600 : 65_536);
  for (let from = 0; from < body.length; from += bytes) yield Buffer.from(body.subarray(from, from + bytes));
}

function expectSame(ours: string, theirs: string, what: string): void {
  const [here, there] = [lookAt(ours), lookAt(theirs)];
  expect(
    [...here.values()].map(({ shown }) => shown),
    what,
  ).toEqual([...there.values()].map(({ shown }) => shown));
  for (const [below, { modified_ms, blocks }] of here) {
    const other = there.get(below);
    expect(Math.abs(modified_ms - (other?.modified_ms ?? 0)), `${what}: time of ${below}`).toBeLessThan(
      0.002,
    );
    expect(blocks, `${what}: disk of ${below}`).toBeLessThan((other?.blocks ?? 0) + BLOCKS_DIFFERENCE);
  }
}

interface Looked {
  shown: string;
  modified_ms: number;
  blocks: number;
}

/** All that is below a directory, by path. */
function lookAt(top: string): Map<string, Looked> {
  const found = new Map<string, Looked>();
  const first_names = new Map<number, string>();
  const look = (directory: string) => {
    for (const name of readdirSync(at(top, directory), { encoding: 'latin1' }).sort()) {
      const below = directory + name;
      const path = at(top, below);
      const stat = lstatSync(path);
      const first_name = first_names.get(stat.ino) ?? below;
      first_names.set(stat.ino, first_name);
      const is_file = stat.isFile();
      const parts = [below, first_name, (stat.mode & (is_file ? 0o170_777 : 0o173_777)).toString(8)];
      if (is_file)
        parts.push(
          String(stat.size),
          readFileSync(path)
            .toString('base64')
            .replaceAll(/A{99,}/g, '~'),
        );
      if (stat.isSymbolicLink()) parts.push(readlinkSync(path, 'latin1'));
      found.set(below, {
        shown: parts.join(' | '),
        modified_ms: stat.mtimeMs,
        blocks: is_file ? stat.blocks : 0,
      });
      if (stat.isDirectory()) look(`${below}/`);
    }
  };
  look('');
  return found;
}
