import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { copyPath } from '../../../src/files/change/copy.ts';
import { NameLocks } from '../../../src/files/change/name-locks.ts';
import { UploadJournal } from '../../../src/files/change/upload-journal.ts';
import { OwnPlaces } from '../../../src/files/own-places.ts';
import { scratchFolder } from '../../support/scratch.ts';

it('a copy keeps special bits', async () => {
  const folder = scratchFolder();
  const journal = new UploadJournal(join(folder, 'journal'));
  const [source, destination] = [join(folder, 'd'), join(folder, 'copy')];
  mkdirSync(source);
  writeFileSync(join(source, 'f'), 'x');
  chmodSync(join(source, 'f'), 0o6755);
  chmodSync(source, 0o1777);
  const { signal } = new AbortController();
  const paths = { source, destination, overwrite: false, signal };
  await copyPath(paths, { own: new OwnPlaces([]), journal, locks: new NameLocks() });
  await journal.close();
  const modes = [destination, join(destination, 'f')].map((each) => statSync(each).mode & 0o7777);
  expect(modes).toEqual([0o1777, 0o6755]);
});
