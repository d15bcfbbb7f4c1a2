import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { copyPath } from '../../../src/files/change/copy.ts';
import { NameLocks } from '../../../src/files/change/name-locks.ts';
import { UploadJournal } from '../../../src/files/change/upload-journal.ts';
import { OwnPlaces } from '../../../src/files/own-places.ts';
import { IS_UID_0 } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

let folder: string;
let journal: UploadJournal;

beforeEach(() => {
  folder = scratchFolder();
  journal = new UploadJournal(join(folder, 'journal'));
});

afterEach(() => journal.close());

it('a copy that replaces a file follows links to it and keeps its mode and owner, and replaces no pipe', async () => {
  const copy = (source: string, destination: string, overwrite = true) =>
    copyPath(
      { source: join(folder, source), destination: join(folder, destination), overwrite, signal },
      { own: new OwnPlaces([]), journal, locks: new NameLocks() },
    );
  const { signal } = new AbortController();
  writeFileSync(join(folder, 'new'), 'new');
  chmodSync(join(folder, 'new'), 0o755);
  mkdirSync(join(folder, 'd'));
  writeFileSync(join(folder, 'd/old'), 'old');
  chmodSync(join(folder, 'd/old'), 0o640);
  if (IS_UID_0) chownSync(join(folder, 'd/old'), 12_345, 54_321);
  const before = statSync(join(folder, 'd/old'));
  symlinkSync('d/old', join(folder, 'link'));
  await expect(copy('new', 'link', false)).rejects.toMatchObject({ code: 'already_exists' });
  await copy('new', 'link');
  expect(readlinkSync(join(folder, 'link'))).toBe('d/old');
  expect(readFileSync(join(folder, 'd/old'), 'utf8')).toBe('new');
  const { mode, uid, gid } = before;
  expect(statSync(join(folder, 'd/old'))).toMatchObject({ mode, uid, gid });
  symlinkSync('d/made', join(folder, 'dangling'));
  await copy('new', 'dangling');
  expect(statSync(join(folder, 'd/made')).mode & 0o777).toBe(0o755);
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  await expect(copy('new', 'pipe')).rejects.toMatchObject({ code: 'not_a_file' });
});

it('a copy keeps special bits', async () => {
  const [source, destination] = [join(folder, 'd'), join(folder, 'copy')];
  mkdirSync(source);
  writeFileSync(join(source, 'f'), 'x');
  chmodSync(join(source, 'f'), 0o6755);
  chmodSync(source, 0o1777);
  const { signal } = new AbortController();
  const paths = { source, destination, overwrite: false, signal };
  await copyPath(paths, { own: new OwnPlaces([]), journal, locks: new NameLocks() });
  const modes = [destination, join(destination, 'f')].map((each) => statSync(each).mode & 0o7777);
  expect(modes).toEqual([0o1777, 0o6755]);
});
