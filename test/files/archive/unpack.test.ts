import { existsSync, mkdirSync, readdirSync, readlinkSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unpackArchive } from '../../../src/files/archive/unpack.ts';
import { UploadJournal } from '../../../src/files/change/upload-journal.ts';
import { OwnPlaces } from '../../../src/files/own-places.ts';
import { type GivenEntry, tarOf } from '../../support/files/tar-entries.ts';
import { scratchFolder } from '../../support/scratch.ts';

let top: string;
let journal: UploadJournal;

beforeEach(() => {
  const folder = scratchFolder();
  top = join(folder, 'top');
  journal = new UploadJournal(join(folder, 'journal'));
});

afterEach(() => journal.close());

async function unpack(archive: Buffer, signal = new AbortController().signal) {
  const data = (async function* () {
    for (let at = 0; at < archive.length; at += 65_536) yield archive.subarray(at, at + 65_536);
  })();
  return unpackArchive({ path: top, data, copy: null, signal }, { own: new OwnPlaces([]), journal });
}

const names = () => readdirSync(top).sort();

describe('links of an archive', () => {
  const up = 'a/b/c/x -> ../../..';
  it.each<[what: string, entries: GivenEntry[], entry: string]>([
    ['through another', ['a/b/c/', up, 'a/b/c/y -> x/..'], 'a/b/c/y'],
    ['through another that comes later', ['a/b/c/', 'a/b/c/y -> x/..', up], 'a/b/c/y'],
    ['through two', ['a/b/', 'a/b/x -> ../..', 'a/y -> b/x', 'z -> a/y/..'], 'z'],
    ['through one that is replaced', ['d/e/', 'x -> d/e', 'y -> x/..', 'x -> d/..', 'z -> x/..'], 'z'],
    ['through one that a later entry replaces', ['d/e/', 'x -> d/e', 'y -> x/../..', 'x -> .'], 'y'],
    ['by an absolute path', ['x -> /etc'], 'x'],
    ['by an absolute path that begins inside', ['x -> TOP/../..'], 'x'],
    ['behind what is missing', ['x -> none/../..'], 'x'],
    ['behind a directory that is made later', ['x -> d/e/../../..', 'd/e/'], 'x'],
    ['behind more links than are followed', chain(41, 'd'), 'l41'],
    ['to themselves', ['x -> x'], 'x'],
  ])('that lead out are refused: %s', async (_, entries, entry) => {
    const given = entries.map((each) => (typeof each === 'string' ? each.replace('TOP', top) : each));
    await expect(unpack(await tarOf(given))).rejects.toThrow(
      `the entry "${entry}" is a link that leads out of the directory`,
    );
    expect(() => readlinkSync(join(top, entry))).toThrow();
    expect(names().filter((name) => name.startsWith('.'))).toEqual([]);
  });

  it('that are there already count as well', async () => {
    mkdirSync(join(top, 'd'), { recursive: true });
    symlinkSync('/', join(top, 'out'));
    await expect(unpack(await tarOf(['d/x -> ../out/etc']))).rejects.toThrow(/"d\/x" is a link/);
  });

  it('that stay inside are kept, wherever they lead on the way', async () => {
    const entries = [
      'a/b/c/',
      'a/b/c/x -> ../../..',
      'a/b/c/y -> x/a/b',
      'to -> TOP/a/./b',
      'z -> to/../b/c/none',
    ];
    const given = [...entries, 'later -> n/m', 'n/m/', 'd/up -> ../n//m/../m/.', ...chain(40, 'a')];
    await unpack(await tarOf(given.map((each) => each.replace('TOP', top))));
    expect(readlinkSync(join(top, 'a/b/c/y'))).toBe('x/a/b');
    expect(existsSync(join(top, 'l40/b'))).toBe(true);
  });

  it('are looked at again where an archive breaks off', async () => {
    const whole = await tarOf([
      'a/b/c/',
      'a/b/c/y -> x/..',
      'a/b/c/x -> ../../..',
      [{ name: 'f' }, 'x'.repeat(9_000)],
    ]);
    await expect(unpack(whole.subarray(0, 4_000))).rejects.toThrow(/complete tar archive/);
    expect([names(), readdirSync(join(top, 'a/b/c'))]).toEqual([['a'], ['x']]);
  });

  it('that lead through too many others are refused', async () => {
    const through = `${'x/'.repeat(1_500)}d`;
    const many = Array.from(
      { length: 40 },
      (_, i): GivenEntry => [
        {
          name: `l${i}`,
          type: 'symlink',
          linkname: i === 0 ? through : `${`l${i - 1}/`.repeat(1)}${through}`,
        },
        '',
      ],
    );
    await expect(unpack(await tarOf(['x/', `x/x -> .`, 'd/', ...many]))).rejects.toThrow(
      /leads out|through too many others/,
    );
  });

  it('through which a hard link leads are not followed', async () => {
    const entries = ['d/', 'd/f', 'x -> d', 'h = x/f'];
    await expect(unpack(await tarOf(entries))).rejects.toThrow(/x is not a directory/);
  });
});

/** Links one behind the other. */
function chain(count: number, end: string): string[] {
  return Array.from({ length: count }, (_, i) => `l${i + 1} -> ${i === 0 ? end : `l${i}`}`);
}

describe('the budget of an archive', () => {
  const deep = (levels: number) => Array.from({ length: levels }, () => 'd').join('/');

  it('holds 400 levels, and makes nothing of what is deeper', async () => {
    await journal.open();
    const before = readdirSync('/proc/self/fd').length;
    await unpack(await tarOf([`${deep(400)}/`, `${deep(399)}/x -> ${'../'.repeat(399)}`]));
    expect(readdirSync('/proc/self/fd').length).toBe(before);
    await expect(unpack(await tarOf([`other/${deep(400)}`]))).rejects.toThrow(/is more than 400 levels deep/);
    expect(existsSync(join(top, 'other'))).toBe(false);
    top = join(top, 'other', deep(401));
    await expect(unpack(await tarOf(['x']))).rejects.toThrow(
      /must not have more than 400 missing directories/,
    );
  });

  it('ends what is headers and padding for the most part', async () => {
    const nothing = gzipSync(Buffer.concat([await tarOf(['f']), Buffer.alloc(66 * 1024 * 1024)]));
    await expect(unpack(nothing)).rejects.toThrow(/must not be headers and padding/);
  });

  it('holds 4 MiB of an extended header, whatever is in it', async () => {
    const pax = (bytes: number) => ({ comment: 'x'.repeat(bytes) });
    await unpack(await tarOf([[{ name: 'f', pax: pax(4_100_000) }, '']]));
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`A.${i}`, '']));
    await unpack(await tarOf([[{ name: 'f', pax: many }, '']]));
    await expect(unpack(await tarOf(['f', [{ name: 'g', pax: pax(4_200_000) }, '']]))).rejects.toThrow(
      /after the entry "f" has more than 4194304 bytes/,
    );
  });

  it('ends with its client, between two levels too', async () => {
    const gone = new AbortController();
    const archive = await tarOf([`${deep(300)}/`, 'more']);
    const data = (async function* () {
      gone.abort();
      yield archive;
    })();
    const work = unpackArchive(
      { path: top, data, copy: null, signal: gone.signal },
      { own: new OwnPlaces([]), journal },
    );
    await expect(work).rejects.toThrow(/was cut off/);
    expect(readdirSync(top)).toEqual([]);
  });
});

it('a hard link that leads out is refused by its own name', async () => {
  for (const linkname of ['../out', '/etc/passwd', 'none'])
    await expect(unpack(await tarOf([[{ name: 'x', type: 'link', linkname }, '']]))).rejects.toThrow(
      /the entry "x" is a link/,
    );
});

it('setgid and sticky bits of directories are kept, and files run as nobody else', async () => {
  await unpack(
    await tarOf([
      [{ name: 'd', type: 'directory', mode: 0o7777 }, ''],
      [{ name: 'f', mode: 0o7755 }, 'x'],
    ]),
  );
  const modes = ['d', 'f'].map((name) => (statSync(join(top, name)).mode & 0o7777).toString(8));
  expect(modes).toEqual(['3777', '755']);
});
