import {
  closeSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldersAbove, hostParts, openStateDir, prepareRootfs, STATE_DIR } from '../../src/runtime/rootfs.ts';
import { scratchFolder } from '../support/scratch.ts';

describe('the root of a fork', () => {
  it('moves obstacles away without looking below them', () => {
    const rootfs = join(scratchFolder(), 'rootfs');
    mkdirSync(join(rootfs, 'etc/passwd/full'), { recursive: true });
    writeFileSync(join(rootfs, 'etc/passwd/full/file'), 'mine');
    symlinkSync('/etc', join(rootfs, 'var'));
    prepareRootfs(rootfs, 'sbx-1', null);
    expect(readdirSync(join(rootfs, 'var'))).toContain('lib');
    const [moved] = readdirSync(join(rootfs, 'etc')).filter((name) => name.startsWith('passwd.replaced-'));
    expect(readdirSync(join(rootfs, 'etc', moved ?? '', 'full'))).toEqual(['file']);
  });
});

describe('the root of a sandbox', () => {
  it('has its folders, files and mount points, and keeps what is there when it is prepared again', () => {
    const rootfs = join(scratchFolder(), 'rootfs');
    prepareRootfs(rootfs, 'sbx-1', null);
    expect(readFileSync(join(rootfs, 'etc/hostname'), 'utf8')).toBe('sbx-1\n');
    expect(statSync(join(rootfs, 'tmp')).mode & 0o7777).toBe(0o1777);
    expect(statSync(join(rootfs, STATE_DIR)).mode & 0o7777).toBe(0o700);
    for (const { path, is_directory } of hostParts()) {
      expect(statSync(join(rootfs, path)).isDirectory(), path).toBe(is_directory);
    }
    writeFileSync(join(rootfs, 'root/mine'), 'kept');
    prepareRootfs(rootfs, 'sbx-2', null);
    expect(readFileSync(join(rootfs, 'root/mine'), 'utf8')).toBe('kept');
    expect(readdirSync(rootfs).filter((name) => name.includes('.replaced-'))).toEqual([]);
  });

  it('has no state directory where a link leads elsewhere', () => {
    const rootfs = join(scratchFolder(), 'rootfs');
    prepareRootfs(rootfs, 'sbx-1', null);
    const state_dir = openStateDir(rootfs) ?? -1;
    expect(readlinkSync(`/proc/self/fd/${state_dir}`)).toBe(join(rootfs, STATE_DIR));
    closeSync(state_dir);
    renameSync(join(rootfs, 'var'), join(rootfs, 'moved'));
    expect(openStateDir(rootfs)).toBeNull();
    symlinkSync('moved', join(rootfs, 'var'));
    expect(openStateDir(rootfs)).toBeNull();
  });

  it('shows the host no more than programs and what they need', () => {
    const paths = hostParts().map(({ path }) => path);
    expect(paths).toContain('/usr');
    for (const secret of ['/etc/shadow', '/etc/passwd', '/etc', '/root', '/home', '/etc/ssl/private']) {
      expect(paths).not.toContain(secret);
    }
    expect(hostParts()).toContainEqual({ path: '/etc/ld.so.preload', is_directory: false, is_there: false });
  });
});

it('the folders above paths come outer ones first, each once, without the root', () => {
  const segment = fc.constantFrom('a', 'b', 'c');
  const path = fc.array(segment, { minLength: 1, maxLength: 5 }).map((parts) => `/${parts.join('/')}`);
  fc.assert(
    fc.property(fc.array(path, { maxLength: 6 }), (paths) => {
      const folders = foldersAbove(paths);
      expect(new Set(folders).size).toBe(folders.length);
      expect(folders).not.toContain('/');
      for (const [i, folder] of folders.entries()) {
        expect(['/', ...folders.slice(0, i)]).toContain(dirname(folder));
        expect(paths.some((each) => each.startsWith(`${folder}/`))).toBe(true);
      }
      for (const each of paths) expect(['/', ...folders]).toContain(dirname(each));
    }),
  );
});
