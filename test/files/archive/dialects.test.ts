import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unpackArchive } from '../../../src/files/archive/unpack.ts';
import { UploadJournal } from '../../../src/files/change/upload-journal.ts';
import { OwnPlaces } from '../../../src/files/own-places.ts';
import { changed, type GivenEntry, sumOf, tarOf } from '../../support/files/tar-entries.ts';
import { Random } from '../../support/random.ts';
import { scratchFolder } from '../../support/scratch.ts';

const BLOCK_BYTES = 512;
const GIB = 1024 ** 3;

let folder: string;
let tree: string;
let top: string;
let journal: UploadJournal;

beforeEach(() => {
  folder = scratchFolder();
  tree = join(folder, 'tree');
  top = join(folder, 'top');
  mkdirSync(tree);
  journal = new UploadJournal(join(folder, 'journal'));
});

afterEach(() => journal.close());

async function unpack(archive: Buffer) {
  const data = (async function* () {
    for (let at = 0; at < archive.length; at += 1_000) yield Buffer.from(archive.subarray(at, at + 1_000));
  })();
  const { signal } = new AbortController();
  return unpackArchive({ path: top, data, copy: null, signal }, { own: new OwnPlaces([]), journal });
}

/** What GNU tar makes of the tree. */
function tar(...options: string[]): Buffer {
  return execFileSync('tar', [...options, '-c', '-C', tree, '.'], { maxBuffer: GIB });
}

/** An extended header, of up to a block. */
async function extended(flag: 'g' | 'x', records: string): Promise<Buffer> {
  return changed(await tarOf([[{ name: 'x' }, records]]), 156, flag).subarray(0, 2 * BLOCK_BYTES);
}

const names = () => readdirSync(top).sort();

describe('sparse files of tar -S', () => {
  it.each([
    ['--format=gnu'],
    ['--format=oldgnu'],
    ['--format=posix', '--sparse-version=0.0'],
    ['--format=posix', '--sparse-version=0.1'],
    ['--format=posix', '--sparse-version=1.0'],
  ])('are unpacked with their holes: %s %s', async (...options) => {
    const file = join(tree, 'f');
    const fd = openSync(file, 'w');
    for (let i = 0; i < 70; i++) writeSync(fd, `part ${i}`, 16_384 * i + i);
    closeSync(fd);
    truncateSync(file, 9 * GIB);
    for (const [name, bytes] of [
      ['none', 0],
      ['hole', 100_000],
    ] as const) {
      // biome-ignore format: a list is a line
      writeFileSync(join(tree, name), '');
      truncateSync(join(tree, name), bytes);
    }
    expect(await unpack(tar('-S', ...options))).toMatchObject({ entries: 4 });
    const [here, there] = ['tree', 'top'].map((each) => statSync(join(folder, each, 'f')));
    expect([there?.size, there?.blocks]).toEqual([here?.size, here?.blocks]);
    const [before, after] = ['tree', 'top'].map((each) => start(join(folder, each, 'f'), 1_200_000));
    expect(after?.equals(before as Buffer)).toBe(true);
    expect(statSync(join(top, 'hole'))).toMatchObject({ size: 100_000, blocks: 0 });
  });

  it('are refused where their map makes no sense, by name', async () => {
    writeFileSync(join(tree, 'f'), 'x');
    truncateSync(join(tree, 'f'), 100_000);
    const archive = tar('-S', '--format=gnu').subarray(BLOCK_BYTES);
    const octal = (value: number) => `${value.toString(8).padStart(11, '0')}\0`;
    for (const [at, text, message] of [
      [483, octal(1), 'map makes no sense'],
      [386, octal(2 ** 33 - 1), 'map makes no sense'],
      [386, '\xff'.repeat(12), 'map makes no sense'],
      [386, 'x', 'map makes no sense'],
      [124, octal(7), 'map makes no sense'],
      [483, '\xff'.repeat(12), 'unknown format'],
      [257, 'ustar\0' + '00', 'unknown format'],
    ] as const) {
      await expect(unpack(changed(archive, at, text))).rejects.toThrow(
        new RegExp(`the entry "\\./f" is a sparse file .*${message}`),
      );
    }
  });

  it('are never said of all entries, each of which would read the map again', async () => {
    const global = await extended('g', '21 GNU.sparse.size=9\n22 GNU.sparse.map=0,1\n');
    await unpack(Buffer.concat([global, await tarOf([[{ name: 'f' }, 'xy']])]));
    expect(readFileSync(join(top, 'f'), 'latin1')).toBe('xy');
  });

  it('have maps of at most 1 MiB', async () => {
    writeFileSync(join(tree, 'f'), 'x');
    truncateSync(join(tree, 'f'), 100_000);
    const archive = tar('-S', '--format=gnu').subarray(BLOCK_BYTES);
    const part = '00000000000\0'.repeat(2);
    const header = changed(changed(archive, 386, part.repeat(4)), 482, '\x01').subarray(0, BLOCK_BYTES);
    const more = Buffer.from(part.repeat(21).padEnd(BLOCK_BYTES, '\x01'));
    const endless = Buffer.concat([header, ...Array.from({ length: 2_100 }, () => more)]);
    await expect(unpack(endless)).rejects.toThrow('"./f" is a sparse file with too many parts');
    await expect(unpack(endless.subarray(0, 4_000))).rejects.toThrow('the entry "./f" is cut off');
  });

  it('of the POSIX format bear the name of their header where no other is given', async () => {
    const pax = { 'GNU.sparse.size': '5', 'GNU.sparse.map': '3,2' };
    await unpack(await tarOf([[{ name: 'f', pax }, 'xy']]));
    expect(readFileSync(join(top, 'f'), 'latin1')).toBe('\0\0\0xy');
    const wrongs: Record<string, string>[] = [{ ...pax, 'GNU.sparse.map': '3' }, { 'GNU.sparse.major': '2' }];
    for (const wrong of wrongs)
      await expect(unpack(await tarOf([[{ name: 'g', pax: wrong }, 'xy']]))).rejects.toThrow(
        /the entry "g" is a sparse file/,
      );
  });
});

it.each(['oldgnu', 'gnu', 'posix'])('labels and incremental archives are taken: %s', async (format) => {
  mkdirSync(join(tree, 'd'));
  writeFileSync(join(tree, 'd/f'), 'mine');
  const archive = tar(`--format=${format}`, '-V', 'label', '-g', join(folder, 'snapshot'));
  expect(await unpack(archive)).toEqual({ entries: 3, bytes: 4 });
  expect([names(), readdirSync(join(top, 'd'))]).toEqual([['d'], ['f']]);
});

it.each(['gnu', 'posix'])('further volumes are refused by name: %s', async (format) => {
  writeFileSync(join(tree, 'f'), Buffer.alloc(60_000, 'x'));
  const volumes = ['1', '2'].map((each) => join(folder, each));
  const files = volumes.flatMap((each) => ['-f', each]);
  spawnSync('tar', [`--format=${format}`, '-c', '-M', '-L', '40', ...files, '-C', tree, 'f']);
  const [first, second] = volumes.map((each) => readFileSync(each));
  await expect(unpack(first as Buffer)).rejects.toThrow('the entry "f" is cut off');
  await expect(unpack(second as Buffer)).rejects.toThrow('the entry "f" continues a file of another volume');
  expect(names()).toEqual([]);
});

it('hard links to symbolic links and pipes are taken, and those that lead out from there are refused', async () => {
  symlinkSync('none', join(tree, 'a'));
  linkSync(join(tree, 'a'), join(tree, 'b'));
  execFileSync('mkfifo', [join(tree, 'c')]);
  linkSync(join(tree, 'c'), join(tree, 'd'));
  await unpack(tar());
  expect(statSync(join(top, 'd')).isFIFO()).toBe(true);
  expect([readlinkSync(join(top, 'a')), readlinkSync(join(top, 'b'))]).toEqual(['none', 'none']);
  await expect(unpack(await tarOf(['e/', 'e/x -> ../f', 'y = e/x']))).rejects.toThrow(
    /the entry "y" is a link that leads out/,
  );
  expect(names()).not.toContain('y');
});

describe('headers', () => {
  it('keep bytes of names in every format that has them, and long ones', async () => {
    const odd = Buffer.from(`${'\xff\xe4 \n'.repeat(50)}`, 'latin1');
    writeFileSync(Buffer.concat([Buffer.from(`${tree}/`), odd]), 'x');
    symlinkSync(odd, join(tree, 'l'));
    for (const format of ['oldgnu', 'gnu', 'posix']) {
      await unpack(tar(`--format=${format}`));
      expect(readdirSync(top, { encoding: 'buffer' }).toSorted(Buffer.compare)).toEqual([
        Buffer.from('l'),
        odd,
      ]);
      expect(readlinkSync(join(top, 'l'), 'buffer')).toEqual(odd);
      execFileSync('rm', ['-r', top]);
    }
  });

  it.each([
    ['gnu', [-86_400, 5_000_000_000]],
    ['posix', [-1.5, 1_700_000_000.123_457, 5_000_000_000]],
  ])('keep times before 1970 and after 2106, and fractions: %s', async (format, times) => {
    for (const time of times) {
      writeFileSync(join(tree, 'f'), '');
      utimesSync(join(tree, 'f'), String(time), String(time));
      await unpack(tar(`--format=${format}`));
      expect(statSync(join(top, 'f')).mtimeMs).toBeCloseTo(time * 1_000, 2);
    }
  });

  it('of the POSIX format say the size, and what holds for all entries until an entry says otherwise', async () => {
    const entries = ['f', [{ name: 'h', pax: { mtime: '5' } }, ''], [{ name: 'i', pax: { mtime: '' } }, '']];
    await unpack(Buffer.concat([await extended('g', '12 mtime=99\n'), await tarOf(entries as GivenEntry[])]));
    const times = ['f', 'h'].map((each) => statSync(join(top, each)).mtimeMs);
    expect(times).toEqual([99_000, 5_000]);
    expect(statSync(join(top, 'i')).mtimeMs).toBeGreaterThan(99_000);
    const sized = changed(await tarOf([[{ name: 'e' }, 'xyz']]), 124, '00000000000\0');
    await unpack(Buffer.concat([await extended('x', '10 size=3\n'), sized]));
    expect(readFileSync(join(top, 'e'), 'utf8')).toBe('xyz');
  });

  it('that make no sense are refused with the name of their entry', async () => {
    const entry = (await tarOf(['f'])).subarray(0, BLOCK_BYTES);
    for (const records of [
      '6 a=b',
      '99 a=b\n',
      'a=b\n',
      '5 ab\n',
      '0 a=b\n',
      '999999999999999 a=b\n',
      `${'9'.repeat(400)} a=b\n`,
    ]) {
      const archive = Buffer.concat([await extended('x', records), entry]);
      await expect(unpack(archive)).rejects.toThrow(
        'the entry "f" has an extended header that makes no sense',
      );
    }
    for (const size of ['x', '\xff'.repeat(12), `\x80${'\xff'.repeat(11)}`])
      await expect(unpack(changed(entry, 124, size))).rejects.toThrow(
        'the entry "f" has a size that makes no sense',
      );
    await expect(unpack(changed(entry, 156, 'Q'))).rejects.toThrow('the entry "f" is of the type "Q"');
  });

  it('may have a sum of signed bytes, and a directory a slash alone', async () => {
    const signed = (bytes: Uint8Array) => sumOf(new Int8Array(bytes));
    const plain = changed(await tarOf(['a/']), 0, '\xff');
    await unpack(changed(plain, 156, '\0', signed));
    expect(statSync(Buffer.from(`${top}/\xff`, 'latin1')).isDirectory()).toBe(true);
  });
});

describe('the end of an archive', () => {
  it('may have anything behind it, or another archive', async () => {
    const [one, other] = [await tarOf(['f']), await tarOf(['g'])];
    await unpack(Buffer.concat([one, other, Buffer.from('and more')]));
    expect(names()).toEqual(['f', 'g']);
  });

  it('is missed, naming the entry before it', async () => {
    const archive = await tarOf([[{ name: 'f' }, 'x'.repeat(1_000)], 'g']);
    for (const [bytes, problem] of [
      [archive.subarray(0, 700), 'the entry "f" is cut off'],
      [archive.subarray(0, 1_700), 'it is cut off after the entry "f"'],
      [archive.subarray(0, 100), 'it is cut off at its beginning'],
      [Buffer.alloc(3_000, 'x'), 'there is no header at its beginning'],
      [Buffer.concat([archive.subarray(0, 2_048), Buffer.alloc(512, 'x')]), 'no header after the entry "g"'],
    ] as const)
      await expect(unpack(bytes)).rejects.toThrow(problem);
    await expect(unpack(gzipSync(archive).subarray(0, 100))).rejects.toThrow(/is not valid gzip (after|at)/);
  });
});

it.each(['tar', 'tar.gz'])('an error does not wait for a client that sends no more: %s', async (format) => {
  const archive = Buffer.concat([
    await tarOf([[{ name: 'x'.repeat(5_000), type: 'character-device' }, '']]),
    new Random(1).bytes(100_000),
  ]);
  const data = (async function* () {
    yield format === 'tar' ? archive : gzipSync(archive).subarray(0, 50_000);
    await new Promise(() => {});
  })();
  const { signal } = new AbortController();
  const work = unpackArchive({ path: top, data, copy: null, signal }, { own: new OwnPlaces([]), journal });
  await expect(work).rejects.toThrow(/the entry "x{1024}..." is of the type character-device/);
});

it('the format of Unix version 7 is taken, and other formats are refused by name', async () => {
  mkdirSync(join(tree, 'sub'));
  await unpack(tar('--format=v7'));
  expect(existsSync(join(top, 'sub'))).toBe(true);
  await expect(unpack(Buffer.from('\xfd7zXZ\0 and more', 'latin1'))).rejects.toThrow(
    'must be tar or tar.gz, not xz: unpack that first (xz -dc)',
  );
  await expect(unpack(Buffer.from('\x28\xb5\x2f\xfd more', 'latin1'))).rejects.toThrow('not zstd');
  await unpack(await tarOf(['BZh']));
  expect(names()).toEqual(['BZh', 'sub']);
});

function start(path: string, bytes: number): Buffer {
  return execFileSync('head', ['-c', String(bytes), path], { maxBuffer: GIB });
}
