import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  createFileNow,
  overwriteFileNow,
  replaceFile,
  replaceFileNow,
  syncFolder,
  syncNow,
} from '../../src/base/durable-file.ts';
import { scratchFolder } from '../support/scratch.ts';

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe.each([
  ['replaceFile', replaceFile],
  ['replaceFileNow', replaceFileNow],
])('%s', (_, replace) => {
  it('puts a new file in the place of the old one, and leaves nothing beside it', async () => {
    const folder = scratchFolder();
    const path = join(folder, 'file');
    const other_name = join(folder, 'other');
    await replace(path, 'first');
    linkSync(path, other_name);
    await replace(path, 'second');
    expect(readFileSync(path, 'utf8')).toBe('second');
    expect(readFileSync(other_name, 'utf8')).toBe('first'); // what was open is not written to
    expect(readdirSync(folder).sort()).toEqual(['file', 'other']);
  });

  it('gives the file the mode asked for, 0600 unless told', async () => {
    const folder = scratchFolder();
    await replace(join(folder, 'secret'), 'x');
    await replace(join(folder, 'public'), 'x', 0o644);
    expect([modeOf(join(folder, 'secret')), modeOf(join(folder, 'public'))]).toEqual([0o600, 0o644]);
  });

  it('follows no link, neither at its path nor at the temporary one, and removes what is there', async () => {
    const folder = scratchFolder();
    const [path, victim] = [join(folder, 'file'), join(folder, 'victim')];
    writeFileSync(victim, 'untouched');
    symlinkSync(victim, path);
    symlinkSync(victim, `${path}.new`);
    await replace(path, 'content');
    expect(readFileSync(victim, 'utf8')).toBe('untouched');
    expect(readFileSync(path, 'utf8')).toBe('content');
    mkdirSync(join(`${path}.new`, 'deep'), { recursive: true });
    await replace(path, 'again');
    expect(readFileSync(path, 'utf8')).toBe('again');
  });

  it('leaves the old file where the new one cannot be written', async () => {
    const folder = scratchFolder();
    const path = join(folder, 'file');
    mkdirSync(join(path, 'in the way'), { recursive: true });
    await expect(async () => replace(path, 'content')).rejects.toThrow(/EISDIR|ENOTEMPTY/);
    expect(existsSync(join(path, 'in the way'))).toBe(true);
  });
});

describe('createFileNow', () => {
  it('creates a file once, and leaves the one that is there', () => {
    const folder = scratchFolder();
    const path = join(folder, 'key');
    expect(createFileNow(path, 'mine')).toBe(true);
    expect(createFileNow(path, 'theirs')).toBe(false);
    expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['mine', 0o600]);
    expect(readdirSync(folder)).toEqual(['key']);
  });

  it('takes a link for a name that is taken', () => {
    const folder = scratchFolder();
    const [path, target] = [join(folder, 'key'), join(folder, 'target')];
    symlinkSync(target, path);
    expect(createFileNow(path, 'content')).toBe(false);
    expect(existsSync(target)).toBe(false);
  });

  it('throws what the system refuses', () => {
    expect(() => createFileNow(join(scratchFolder(), 'missing', 'key'), 'content')).toThrow('ENOENT');
  });
});

describe('overwriteFileNow', () => {
  it('writes the file itself, so that its other names see it, and closes it to others', () => {
    const folder = scratchFolder();
    const [path, other_name] = [join(folder, 'token'), join(folder, 'other')];
    writeFileSync(path, 'a longer content than the next');
    chmodSync(path, 0o644);
    linkSync(path, other_name);
    overwriteFileNow(path, 'short');
    expect([readFileSync(other_name, 'utf8'), modeOf(path)]).toEqual(['short', 0o600]);
  });

  it('creates the file if it is missing', () => {
    const path = join(scratchFolder(), 'token');
    overwriteFileNow(path, 'content');
    expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['content', 0o600]);
  });

  it('does not follow a link', () => {
    const folder = scratchFolder();
    symlinkSync(join(folder, 'target'), join(folder, 'token'));
    expect(() => overwriteFileNow(join(folder, 'token'), 'content')).toThrow('ELOOP');
    expect(existsSync(join(folder, 'target'))).toBe(false);
  });
});

it('syncs files and folders, and throws for what is not there', async () => {
  const folder = scratchFolder();
  writeFileSync(join(folder, 'file'), 'content');
  expect(() => [syncNow(folder), syncNow(join(folder, 'file'))]).not.toThrow();
  await syncFolder(folder);
  expect(() => syncNow(join(folder, 'missing'))).toThrow('ENOENT');
  await expect(syncFolder(join(folder, 'file'))).rejects.toThrow('ENOTDIR');
});
