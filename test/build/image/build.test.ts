import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { buildImage } from '../../../.build/image/build.ts';
import { removeSymbols } from '../../../.build/image/symbols.ts';
import { eventually } from '../../support/eventually.ts';
import { RunningProgram } from '../../support/running-program.ts';
import { scratchFolder } from '../../support/scratch.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const folder = mkdtempSync(join(tmpdir(), 'sandboxd-image-test-'));
const tree = join(folder, 'image');
const library = 'usr/local/lib/sandboxd';

beforeAll(() => buildImage(tree));
afterAll(() => rmSync(folder, { recursive: true }));

const run = (root: string, args: string[], program = 'sandboxd') =>
  spawnSync(join(root, 'usr/local/bin', program), args, { encoding: 'utf8', env: { PATH: '/nowhere' } });

/** Starts a daemon of the tree's own, which ends with the test. */
function startOwn(options: string[], env: Record<string, string> = {}): RunningProgram {
  const command = [join(tree, 'usr/local/bin/sandboxd'), ...options];
  const daemon = new RunningProgram(command, { env: { PATH: '/nowhere', ...env }, extendEnv: false });
  onTestFinished(async () => void (await daemon.stop()));
  return daemon;
}

function filesOf(root: string, below = ''): string[] {
  return readdirSync(join(root, below))
    .map((name) => join(below, name))
    .flatMap((path) => (statSync(join(root, path)).isDirectory() ? filesOf(root, path) : [path]));
}

/** A tree of which something is changed. */
function changed(change: (library: string) => void): string {
  const copy = mkdtempSync(join(folder, 'changed-'));
  cpSync(tree, copy, { recursive: true });
  change(join(copy, library));
  return copy;
}

describe('the tree for images', () => {
  it('is the same, byte for byte, when it is made again elsewhere', async () => {
    const again = join(folder, 'again', 'deeper');
    await buildImage(again);
    const digest = (root: string) =>
      filesOf(root).map((path) => [
        path,
        createHash('sha256')
          .update(readFileSync(join(root, path)))
          .digest('hex'),
      ]);
    expect(digest(again)).toEqual(digest(tree));
  });

  it('tells the size and checksum of each file, the versions, and no more and no less than what is there', () => {
    const manifest = JSON.parse(readFileSync(join(tree, library, 'manifest.json'), 'utf8'));
    const others = filesOf(tree).filter((path) => !path.endsWith('manifest.json'));
    expect(Object.keys(manifest.files).sort()).toEqual(others.map((path) => `/${path}`).sort());
    for (const path of others) {
      const bytes = readFileSync(join(tree, path));
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      expect(manifest.files[`/${path}`]).toEqual({ size_bytes: bytes.length, sha256 });
    }
    expect(manifest).toMatchObject({ name: 'sandboxd', libc: 'glibc', platform: `linux-${process.arch}` });
    expect(`v${manifest.node}`).toBe(process.version);
    expect(Object.keys(manifest.packages)).toEqual(
      expect.arrayContaining(['better-sqlite3', 'fastify', 'undici']),
    );
  });

  it('holds nothing but the commands and their library, and nothing that others could change', () => {
    expect(readdirSync(join(tree, 'usr/local/bin')).sort()).toEqual(['sandboxctl', 'sandboxd']);
    expect(readdirSync(join(tree, 'usr/local')).sort()).toEqual(['bin', 'lib']);
    for (const path of filesOf(tree)) expect(statSync(join(tree, path)).mode & 0o022).toBe(0);
  });

  it('brings the licence of everything in it', () => {
    const text = readFileSync(join(tree, library, 'LICENSES'), 'utf8');
    const { packages } = JSON.parse(readFileSync(join(tree, library, 'manifest.json'), 'utf8'));
    for (const [name, version] of Object.entries(packages)) expect(text).toContain(`${name} ${version} (`);
  });

  it('has loaded no more of Node when it listens than that takes', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void taken.close());
    await new Promise((resolve) => taken.once('listening', resolve));
    const preloaded = join(folder, 'loaded.cjs');
    writeFileSync(preloaded, 'process.on("exit", () => console.log(process.moduleLoadList.join()));');
    const args = [
      '--port',
      String((taken.address() as AddressInfo).port),
      '--state-dir',
      join(folder, 'none'),
    ];
    // The start ends where it would listen.
    const { status, stdout } = spawnSync(
      join(tree, library, 'node'),
      ['--disable-sigusr1', '--require', preloaded, join(tree, library, 'sandboxd.cjs'), ...args],
      { encoding: 'utf8', env: { MALLOC_ARENA_MAX: '1' } },
    );
    expect(status).toBe(1);
    const loaded = stdout.split(',').map((name) => name.replace('NativeModule ', ''));
    expect(loaded).toContain('http');
    const slow = [
      'assert',
      'child_process',
      'cluster',
      'crypto',
      'dns',
      'internal/fs/promises',
      'worker_threads',
    ];
    expect(loaded.filter((name) => slow.includes(name))).toEqual([]);
  });

  it('runs without any Node, shell tool or package of the machine', () => {
    expect(run(tree, ['--version'])).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringMatching(/^\d/),
    });
    expect(run(tree, ['--version'], 'sandboxctl')).toMatchObject({ status: 0, stderr: '' });
  });

  it('works with files, whose parts use some of the entry', async () => {
    const state_dir = join(folder, 'state');
    const options = ['--state-dir', state_dir, '--port', '0', '--host', '127.0.0.1', '--await-init'];
    const daemon = startOwn(options);
    const { url = '' } = await daemon.logged('listening');
    const token = readFileSync(join(state_dir, 'control-token'), 'utf8').trim();
    const answer = await fetch(`${url}/api/v1/files/list?path=${encodeURIComponent(tree)}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(await answer.json()).toMatchObject({ success: true, data: { entries: [{ name: 'usr' }] } });
  });

  it('delivers with the parser that it has, whatever the environment asks for', async () => {
    const receiver = createHttpServer();
    onTestFinished(() => void receiver.close().closeAllConnections());
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const delivered = new Promise((resolve) => {
      receiver.on('request', (request, response) => {
        request.resume().on('end', () => response.writeHead(204).end(() => resolve(request.method)));
      });
    });
    const options = ['--state-dir', join(folder, 'delivering'), '--port', '0', '--webhook-url', url];
    const daemon = startOwn(options, { UNDICI_USE_MILO: '1' });
    const { url: api = '' } = await daemon.logged('listening');
    expect(await delivered).toBe('POST');
    await eventually(async () => {
      const metrics = await (await fetch(`${api}/metrics`)).text();
      expect(metrics).toContain('delivery_attempts_total{outcome="delivered",class="2xx"} 1');
    });
  });

  it.each([
    ['sandboxd', 'sandboxd.sandboxd-options'],
    ['sandboxd', 'writer-thread.program'],
    ['sandboxctl', 'sandboxctl.program'],
  ])('uses what the compiler made beforehand for %s: %s', (program, name) => {
    const part = join(tree, library, `${name}.cjs`);
    const rejected = `
      const { readFileSync } = require('node:fs');
      const text = '(function(exports,require,module,__filename,__dirname){' + readFileSync(${JSON.stringify(part)}, 'latin1') + '\\n})';
      const cachedData = readFileSync(${JSON.stringify(part.replace('.cjs', '.cache'))});
      console.log(new (require('node:vm').Script)(text, { cachedData }).cachedDataRejected);`;
    const launcher = readFileSync(join(tree, 'usr/local/bin', program), 'utf8');
    const flags = /node" (.*) "\$lib/.exec(launcher)?.[1]?.split(' ') ?? [];
    const node = join(tree, library, 'node');
    expect(execFileSync(node, [...flags, '-e', rejected], { encoding: 'utf8' })).toBe('false\n');
  });

  it('starts also where what the compiler made does not fit', () => {
    const other = changed((path) =>
      writeFileSync(join(path, 'sandboxd.sandboxd-options.cache'), 'of another engine'),
    );
    expect(run(other, ['--version'])).toMatchObject({ status: 0, stderr: '' });
  });

  it.each([
    ['missing', (path: string) => rmSync(join(path, 'sqlite.node')), /the addon .*sqlite\.node is missing/],
    ['of another architecture', foreign, /the addon cannot be loaded: .*sqlite\.node/],
  ])('says in one line that an addon is %s, and exits 1', (_, change, message) => {
    const broken = changed(change);
    const { status, stderr } = run(broken, [
      '--state-dir',
      join(broken, 'state'),
      '--port',
      '0',
      '--log-level',
      'silent',
    ]);
    expect(stderr).toMatch(/^sandboxd: [^\n]+\n$/);
    expect(stderr).toMatch(message);
    expect(status).toBe(1);
  });

  it('says in one line that it is for another machine, and exits 1', () => {
    const broken = changed((path) => {
      const launcher = join(path, '../../bin/sandboxd');
      const text = readFileSync(launcher, 'utf8');
      writeFileSync(
        launcher,
        text.replaceAll(/\/lib\S*ld-linux\S+?(?=[ \]]|$)/gm, '/lib/ld-linux-other.so.1'),
      );
    });
    const { status, stderr } = run(broken, ['--version']);
    expect(stderr).toMatch(/^sandboxd: this build is for \S+ Linux with glibc: [^\n]+ does not exist\n$/);
    expect(status).toBe(1);
  });

  it('says in one line that glibc is too old, and exits 1', () => {
    const libraries = scratchFolder();
    writeFileSync(join(libraries, 'libc-2.28.so'), '');
    const broken = changed((path) => {
      const launcher = join(path, '../../bin/sandboxd');
      const text = readFileSync(launcher, 'utf8');
      writeFileSync(launcher, text.replace('/lib64/libc-2.', `${libraries}/libc-2.`));
    });
    const { status, stderr } = run(broken, ['--version']);
    expect([status, stderr]).toEqual([1, 'sandboxd: glibc 2.34 or newer is needed; this is 2.28\n']);
  });

  it('says in one line that a part of it is missing, and exits 1', () => {
    const broken = changed((path) => rmSync(join(path, 'sandboxd.sandboxd-options.cjs')));
    const { status, stderr } = run(broken, ['--version']);
    expect(stderr).toMatch(/^sandboxd: [^\n]+\n$/);
    expect(status).toBe(1);
  });
});

/** The machine that an ELF file is for, made another one. */
function foreign(path: string): void {
  const file = join(path, 'sqlite.node');
  const elf = readFileSync(file);
  elf.writeUInt16LE(243, 18);
  writeFileSync(file, elf);
}

describe('taking symbols out', () => {
  it('refuses what is no executable', () => {
    const path = join(folder, 'text');
    writeFileSync(path, 'no ELF'.repeat(1000));
    expect(() => removeSymbols(path)).toThrow('is not a 64-bit ELF file');
  });
});
