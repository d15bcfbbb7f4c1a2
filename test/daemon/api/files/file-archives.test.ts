import { isUtf8 } from 'node:buffer';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { eventually } from '../../../support/eventually.ts';
import { scratchFolder } from '../../../support/scratch.ts';

let daemon: LocalDaemon;
let folder: string;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
  folder = scratchFolder();
});

const at = (path: string, more = '') => `/files/archive?path=${encodeURIComponent(path)}${more}`;
const put = (path: string, body: Uint8Array) => daemon.ask(at(path), { method: 'PUT', body });

async function get(path: string, more = ''): Promise<Buffer> {
  const response = await fetch(`${daemon.url}${at(path, more)}`, { headers: daemon.authorization });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

/** A tree with all that archives carry. */
function makeTree(root: string): void {
  const deep = join(root, 'd'.repeat(100), 'ü'.repeat(60));
  mkdirSync(deep, { recursive: true });
  writeFileSync(join(deep, 'file'), 'deep');
  writeFileSync(join(root, 'large'), Buffer.alloc(700_001, 'some bytes '));
  writeFileSync(join(root, 'run'), '#!');
  chmodSync(join(root, 'run'), 0o755);
  linkSync(join(root, 'run'), join(root, 'same'));
  symlinkSync('run', join(root, 'link'));
  writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff])]), 'bytes');
  writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.alloc(150, 0xfe)]), 'long bytes');
  writeFileSync(join(root, 'sparse'), '');
  truncateSync(join(root, 'sparse'), 50_000_000);
  writeFileSync(join(root, 'sparse'), 'middle', { flag: 'r+' });
  mkdirSync(join(root, 'locked'));
  chmodSync(join(root, 'locked'), 0o555);
  execFileSync('mkfifo', [join(root, 'pipe')]);
}

/** Names, kinds, modes, links and content, as `tar` and `find` see them. */
function look(root: string): string {
  const shown = ['!', '-name', 'pipe', '-printf', '%P %y %m %l\\n'];
  const names = execFileSync('find', [root, '-mindepth', '1', ...shown], { encoding: 'latin1' });
  const sums = execFileSync('sh', ['-c', 'find . -type f -exec sha256sum {} +'], {
    cwd: root,
    encoding: 'latin1',
  });
  return [...names.split('\n'), ...sums.split('\n')].sort().join('\n');
}

describe('archives', () => {
  it('carry a tree there and back, also through tar, and keep sparse files and hard links', async () => {
    const tree = join(folder, 'tree');
    makeTree(tree);
    const archive = await get(tree);
    expect(archive.length).toBeLessThan(2_000_000);
    const by_tar = join(folder, 'by-tar');
    mkdirSync(by_tar);
    execFileSync('tar', ['-xpf', '-', '-C', by_tar], { input: archive });
    expect(look(by_tar)).toBe(look(tree));
    const { status, data } = await put(join(folder, 'new/back'), await get(tree, '&format=tar.gz'));
    expect([status, data]).toEqual([200, { entries: 11, bytes: expect.any(Number) }]);
    const back = join(folder, 'new/back');
    expect(look(back)).toBe(look(tree));
    expect(statSync(join(back, 'same')).ino).toBe(statSync(join(back, 'run')).ino);
    expect(statSync(join(back, 'sparse')).blocks * 512).toBeLessThan(200_000);
    expect(readdirSync(back)).not.toContain('pipe');
  });

  it('of tar itself are unpacked over what is there, gzipped or sparse', async () => {
    const tree = join(folder, 'tree');
    makeTree(tree);
    const by = (...args: string[]) =>
      execFileSync('tar', [...args, '--exclude=pipe', '-C', tree, '.'], { maxBuffer: 1e9 });
    const target = join(folder, 'target');
    mkdirSync(target);
    writeFileSync(join(target, 'run'), 'old');
    writeFileSync(join(target, 'other'), 'stays');
    expect((await put(target, by('-czf', '-'))).status).toBe(200);
    expect([readFileSync(join(target, 'run'), 'utf8'), readFileSync(join(target, 'other'), 'utf8')]).toEqual([
      '#!',
      'stays',
    ]);
    // Extended headers are UTF-8.
    for (const name of readdirSync(tree, 'buffer').filter((each) => !isUtf8(each))) {
      rmSync(Buffer.concat([Buffer.from(`${tree}/`), name]));
    }
    expect((await put(join(folder, 'two'), by('-cSf', '-', '--format=posix'))).status).toBe(200);
    expect(look(join(folder, 'two'))).toBe(look(tree));
    const single = await get(join(tree, 'run'));
    expect(execFileSync('tar', ['-xOf', '-', 'run'], { input: single, encoding: 'utf8' })).toBe('#!');
  });

  it('that lead out of their directory are refused by name, and touch nothing there', async () => {
    const outside = join(folder, 'outside');
    const target = join(folder, 'target');
    mkdirSync(outside);
    mkdirSync(target);
    symlinkSync(outside, join(target, 'out'));
    writeFileSync(join(outside, 'file'), 'mine');
    const file = (name: string) => [{ name }, 'evil'] as const;
    const bad: [entries: (readonly [object, string?])[], message: RegExp][] = [
      [[file('/tmp/absolute')], /"\/tmp\/absolute" has an absolute name/],
      [[file('a/../../up')], /"a\/..\/..\/up" leads out/],
      [[[{ name: 'l', type: 'symlink', linkname: '../outside' }]], /"l" is a link that leads out/],
      [[[{ name: 'l', type: 'symlink', linkname: outside }]], /"l" is a link that leads out/],
      [[[{ name: 'h', type: 'link', linkname: '../outside/file' }]], /entry "h" is a link that leads out/],
      [
        [[{ name: 'h', type: 'link', linkname: 'none' }]],
        /"h" is a link to what is no file|no such|not found/i,
      ],
      [
        [[{ name: 'd', type: 'character-device', devmajor: 1, devminor: 3 }]],
        /"d" is of the type character-device/,
      ],
      [[[{ name: 'p', type: 'character-device' }]], /"p" is of the type character-device/],
    ];
    for (const [entries, message] of bad) {
      const archive = pack();
      for (const [header, content] of entries) archive.entry(header as { name: string }, content ?? '');
      archive.finalize();
      const { status, error } = await put(target, await buffer(archive));
      expect(error?.message).toMatch(message);
      expect(status).toBeGreaterThanOrEqual(400);
    }
    const through = pack();
    through.entry({ name: 'out/file' }, 'evil');
    through.finalize();
    expect((await put(target, await buffer(through))).error.code).toBe('not_a_directory');
    const state = pack();
    state.entry({ name: 'control-token' }, 'evil');
    state.finalize();
    expect((await put(daemon.daemon.config.state_dir, await buffer(state))).error.code).toBe('forbidden');
    expect((await put(target, Buffer.alloc(3_000, 'x'))).error.message).toMatch(
      /^body: must be a complete tar/,
    );
    expect((await put(target, Buffer.from([0x1f, 0x8b, 1, 2, 3]))).error.message).toMatch(
      /^body: is not valid gzip/,
    );
    const whole = pack();
    whole.entry({ name: 'big' }, Buffer.alloc(200_000, 'x'));
    whole.finalize();
    const bytes = await buffer(whole);
    const cut = await put(target, bytes.subarray(0, 100_000));
    expect(cut.error.message).toMatch(/^body: must be a complete tar/);
    const damaged = gzipSync(bytes);
    damaged.fill(0, damaged.length - 8);
    expect((await put(target, damaged)).error.message).toMatch(/^body: is not valid gzip/);
    const nul = pack();
    nul.entry({ name: 'x', pax: { path: 'a\0b' } }, 'x');
    nul.finalize();
    expect((await put(target, await buffer(nul))).error.message).toMatch(/has a name with NUL/);
    expect((await put(target, Buffer.alloc(0))).error.message).toMatch(/^body: must be a tar archive/);
    expect([readFileSync(join(outside, 'file'), 'utf8'), readdirSync(outside), readdirSync(target)]).toEqual([
      'mine',
      ['file'],
      ['out'],
    ]);
    expect(readlinkSync(join(target, 'out'))).toBe(outside);
  });

  it('that break off leave no file half, and nothing aside', async () => {
    const archive = pack();
    archive.entry({ name: 'whole' }, 'whole');
    const half = archive.entry({ name: 'half', size: 1_000_000 });
    half.write(Buffer.alloc(1_000));
    for (const stream of [archive, half]) stream.on('error', () => {});
    const sent = request(`${daemon.url}${at(folder)}`, {
      method: 'PUT',
      headers: daemon.authorization,
      agent: false,
    });
    sent.on('error', () => {});
    archive.pipe(sent);
    await eventually(() => expect(readdirSync(folder)).toContain('whole'));
    sent.destroy();
    await eventually(() => expect(readdirSync(folder)).toEqual(['whole']));
  });
});
