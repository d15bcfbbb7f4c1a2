import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packPath } from '../../../src/files/archive/pack.ts';
import type { Loss } from '../../../src/files/archive/tree-copy.ts';
import { unpackArchive } from '../../../src/files/archive/unpack.ts';
import { UploadJournal } from '../../../src/files/change/upload-journal.ts';
import { OwnPlaces } from '../../../src/files/own-places.ts';
import { changed, type GivenEntry, tarOf } from '../../support/files/tar-entries.ts';
import { scratchFolder } from '../../support/scratch.ts';

const own = new OwnPlaces([]);
const { signal } = new AbortController();
let folder: string;
let top: string;
let journal: UploadJournal;
let losses: Loss[];

beforeEach(() => {
  folder = scratchFolder();
  top = join(folder, 'top');
  journal = new UploadJournal(join(folder, 'journal'));
  losses = [];
});

afterEach(() => journal.close());

const onLoss = (loss: Loss) => void losses.push(loss);

async function unpack(entries: readonly GivenEntry[], copy: { is_trusted: boolean } | null) {
  const archive = await tarOf(entries);
  const data = (async function* () {
    yield archive;
  })();
  return unpackArchive({ path: top, data, copy: copy && { ...copy, onLoss }, signal }, { own, journal });
}

describe('a tree that is unpacked as a copy', () => {
  it.each([false, true])('makes no device, whoever sends it (trusted: %s)', async (is_trusted) => {
    for (const type of ['character-device', 'block-device'] as const) {
      await expect(
        unpack([[{ name: 'd', type, devmajor: 1, devminor: 3 }, '']], { is_trusted }),
      ).rejects.toThrow(/is of the type (character|block)-device, which is not accepted/);
    }
    expect(readdirSync(top)).toEqual([]);
  });

  it('is written through no link of its own, and through none that is there', async () => {
    mkdirSync(join(folder, 'out'));
    writeFileSync(join(folder, 'out/f'), 'safe');
    const out = `${folder}/out`;
    await unpack([`d -> ${out}`, `f -> ${out}/f`, [{ name: 'f' }, 'hostile']], { is_trusted: true });
    expect(readFileSync(join(top, 'f'), 'utf8')).toBe('hostile');
    expect(readlinkSync(join(top, 'd'))).toBe(out);
    await expect(unpack([[{ name: 'd/f' }, 'hostile']], { is_trusted: true })).rejects.toThrow(
      /d is not a directory/,
    );
    expect(readFileSync(join(folder, 'out/f'), 'utf8')).toBe('safe');
  });

  it('loses links that lead out in the end, and tells of each', async () => {
    await unpack(['d/e/', 'y -> x/../..', 'x -> d/e', 'x -> .', 'in -> d', 'out -> /'], {
      is_trusted: false,
    });
    expect(losses.map(({ path }) => path)).toEqual(['y', 'out']);
    expect(readdirSync(top).sort()).toEqual(['d', 'in', 'x']);
  });

  it('gives a new top its mode and time, and leaves one that is there as it is', async () => {
    const itself: GivenEntry = [
      { name: './', type: 'directory', mode: 0o1710, mtime: new Date(1_000_000_000_000) },
      '',
    ];
    await unpack([itself, 'f'], { is_trusted: false });
    const { mode, mtimeMs } = statSync(top);
    expect([mode & 0o7777, mtimeMs]).toEqual([0o1710, 1_000_000_000_000]);
    await unpack([[{ name: './', type: 'directory', mode: 0o777 }, ''], 'g'], { is_trusted: false });
    expect(statSync(top).mode & 0o7777).toBe(0o1710);
    await unpack([[{ name: './', type: 'directory', mode: 0o777 }, '']], null);
    expect(statSync(top).mode & 0o7777).toBe(0o1710);
  });
});

it('pipes, and times of directories and links, are unpacked of any archive', async () => {
  const mtime = new Date(1_000_000_000_000);
  await unpack(
    [
      [{ name: 'd/', type: 'directory', mtime }, ''],
      [{ name: 'd/p', type: 'fifo', mode: 0o620, mtime }, ''],
      [{ name: 'd/l', type: 'symlink', linkname: 'p', mtime }, ''],
      'z',
    ],
    null,
  );
  const stats = ['d', 'd/p', 'd/l'].map((name) => lstatSync(join(top, name)));
  expect(stats.map(({ mtimeMs }) => mtimeMs)).toEqual(Array(3).fill(mtime.getTime()));
  expect([stats[1]?.isFIFO(), (stats[1]?.mode ?? 0) & 0o777]).toEqual([true, 0o620]);
});

it('an entry that only names a loss is refused in any other archive', async () => {
  const archive = changed(await tarOf(['s']), 156, 'O');
  const data = (async function* () {
    yield archive;
  })();
  const work = unpackArchive({ path: top, data, copy: null, signal }, { own, journal });
  await expect(work).rejects.toThrow(/"s" is of the type "O"/);
  expect(existsSync(join(top, 's'))).toBe(false);
});

describe('a tree that is packed as a copy', () => {
  async function packed(change: () => void) {
    mkdirSync(top);
    writeFileSync(join(top, 'f'), Buffer.alloc(1_000_000, 1));
    let is_first = true;
    for await (const _ of await packPath(top, { own, signal, copy: { onLoss } })) {
      if (is_first) change();
      is_first = false;
    }
  }

  it('tells of a file that becomes longer', async () => {
    await packed(() => appendFileSync(join(top, 'f'), 'more'));
    const what = 'became longer while it was copied; its first 1000000 bytes were copied';
    expect(losses).toEqual([{ path: 'f', what, is_failure: true }]);
  });

  it('names a file that becomes shorter', async () => {
    await expect(packed(() => truncateSync(join(top, 'f'), 10))).rejects.toThrow(
      `${top}/f became shorter while it was read`,
    );
  });
});
