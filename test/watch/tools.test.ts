import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  cpSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FileModified } from '../../src/contract/events.ts';
import { Mirror } from '../support/watch/mirror.ts';
import { WatchedTree } from '../support/watch/watched-tree.ts';

const PACKAGE = fileURLToPath(new URL('../../node_modules/typebox', import.meta.url));
const QUIET_NPM = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error'];

let tree: WatchedTree;
let mirror: Mirror;

beforeEach(() => {
  tree = new WatchedTree();
  tree.make('./');
});

afterEach(() => tree.close());

/** A case with a real tool; where it is not there the title says so. */
function withTool(tool: string, title: string, run: () => Promise<void>): void {
  const is_there = spawnSync(tool, ['--version'], { stdio: 'ignore' }).error === undefined;
  it.skipIf(!is_there)(is_there ? title : `${title} (skipped: needs ${tool})`, run, 120_000);
}

const isMark = ({ path }: FileModified) => path.includes('/.mark-');

/** Watches from now on; a mirror follows the events as they are committed. */
async function watch(): Promise<void> {
  mirror = new Mirror(below(tree.top), content);
  tree.store.onCommit = ({ events }) => {
    for (const { payload } of events) if (!isMark(payload)) mirror.apply(payload);
  };
  await tree.start();
}

function below(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    return entry.isDirectory() ? [path, ...below(path)] : [path];
  });
}

/** What a file holds, where a link goes; null for a directory and for what is gone. */
function content(path: string): string | null {
  try {
    const stats = lstatSync(path);
    if (stats.isSymbolicLink()) return readlinkSync(path);
    return stats.isFile() ? readFileSync(path, 'latin1') : null;
  } catch {
    return null;
  }
}

/** Runs what changes the tree, and returns what was told of it when the mirror and the disk are the same. */
async function follow(change: () => unknown): Promise<string[]> {
  const told = await tree.told_since(change);
  const paths = below(tree.top).filter((path) => !path.includes('/.mark-'));
  const wanted = new Mirror(paths, content).entries();
  const entries = mirror.entries();
  expect(entries.map(([path]) => path)).toEqual(wanted.map(([path]) => path));
  expect(entries.filter(([, text], i) => text !== wanted[i]?.[1]).map(([path]) => path)).toEqual([]);
  return told;
}

const execute = promisify(execFile);

/** Runs a program in the watched directory, or in another, counted from there. */
async function run(program: string, args: string[], cwd = '.'): Promise<string> {
  const { stdout } = await execute(program, args, { cwd: resolve(tree.top, cwd), maxBuffer: 2 ** 26 });
  return stdout;
}

/** Files outside, to be copied in. */
function makeOutside(name: string, files: Record<string, string>): string {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree.base, name, path)), { recursive: true });
    writeFileSync(join(tree.base, name, path), text);
  }
  return join(tree.base, name);
}

const git = (cwd: string, ...args: string[]) =>
  run('git', ['-c', 'user.name=n', '-c', 'user.email=e@example.test', '-c', 'gc.auto=0', ...args], cwd);

/** A repository whose two branches differ in everything: content, names, and what is file and what directory. */
async function makeRepository(): Promise<string> {
  const files = Object.fromEntries(
    Array.from({ length: 400 }, (_, i) => [`d${i % 20}/f${i}`, `content of ${i}\n`.repeat(10)]),
  );
  const origin = makeOutside('origin', { ...files, 'either/file': 'x', other: 'y' });
  await git(origin, 'init', '-q', '-b', 'main');
  await git(origin, 'add', '.');
  await git(origin, 'commit', '-q', '-m', 'main');
  await git(origin, 'checkout', '-q', '-b', 'side');
  renameSync(join(origin, 'd0'), join(origin, 'e0'));
  rmSync(join(origin, 'd1'), { recursive: true });
  rmSync(join(origin, 'either'), { recursive: true });
  writeFileSync(join(origin, 'either'), 'a file here');
  unlinkSync(join(origin, 'other'));
  cpSync(join(origin, 'd2'), join(origin, 'other'), { recursive: true });
  for (let i = 3; i < 20; i++) writeFileSync(join(origin, `d${i}/f${i}`), `another ${i}`);
  chmodSync(join(origin, 'd4/f4'), 0o755);
  await git(origin, 'add', '.');
  await git(origin, 'commit', '-q', '-m', 'side');
  return origin;
}

/** A real package as it comes from the registry, without one. */
async function packed(): Promise<string> {
  const args = ['pack', PACKAGE, '--pack-destination', tree.base, '--json', ...QUIET_NPM];
  const [{ filename }] = JSON.parse(await run('npm', args));
  return join(tree.base, filename);
}

describe('what is told of a tool gives the same tree as the disk', () => {
  withTool('git', 'git clone, checkout, merge and repack', async () => {
    const origin = await makeRepository();
    await watch();
    const cloned = await follow(() => run('git', ['clone', '-q', '--no-hardlinks', origin, 'c']));
    expect(cloned.filter((event) => /^create c\/d\d+\/f\d+$/.test(event))).toHaveLength(360);
    await follow(() => git('c', 'checkout', '-q', 'main'));
    for (const branch of ['side', 'main', 'side']) await follow(() => git('c', 'checkout', '-q', branch));
    await follow(async () => {
      await git('c', 'checkout', '-q', 'main');
      await git('c', 'merge', '-q', '--no-ff', '-m', 'both', 'side');
      await git('c', 'gc', '-q');
      await git('c', 'reset', '-q', '--hard', 'HEAD~1');
      await git('c', 'clean', '-qfdx');
    });
  });

  withTool('npm', 'npm install and uninstall of a packed package', async () => {
    const tarball = await packed();
    await watch();
    writeFileSync(tree.at('package.json'), '{"name":"a","version":"1.0.0"}');
    const told = await follow(() => run('npm', ['install', tarball, ...QUIET_NPM]));
    expect(told.length).toBeGreaterThan(500);
    expect(content(tree.at('node_modules/typebox/package.json'))).toContain('"typebox"');
    await follow(() => run('npm', ['uninstall', 'typebox', ...QUIET_NPM]));
  });

  withTool('tar', 'an untar, twice over itself', async () => {
    const tarball = await packed();
    await watch();
    for (let i = 0; i < 2; i++) await follow(() => run('tar', ['xzf', tarball]));
    await follow(() => run('tar', ['xzf', tarball, '--unlink-first', '--recursive-unlink']));
  });

  withTool('rsync', 'rsync, again with changes, in place and with deletions', async () => {
    const from = `${makeOutside('from', { 'a/1': 'x', 'a/2': 'x', 'b/3': 'x', same: 'x' })}/`;
    const sync = (...more: string[]) => run('rsync', ['-a', '--checksum', ...more, from, `${tree.top}/to/`]);
    await watch();
    await follow(() => sync());
    makeOutside('from', { 'a/1': 'longer', 'c/d/4': 'new' });
    const told = await follow(() => sync());
    expect(told.filter((event) => event.startsWith('rename'))).toEqual([
      expect.stringMatching(/^rename to\/a\/\.1\.\w+ -> to\/a\/1$/),
    ]);
    makeOutside('from', { 'a/1': 'once more' });
    expect(await follow(() => sync('--inplace'))).toEqual(['write to/a/1']);
    rmSync(join(from, 'a'), { recursive: true });
    const removed = await follow(() => sync('--delete'));
    expect(removed.sort()).toEqual(['remove to/a', 'remove to/a/1', 'remove to/a/2']);
  });

  withTool('sed', 'sed -i of many files', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `f${i}`);
    tree.make(...names);
    await watch();
    const told = await follow(() => run('sed', ['-i', 's/content/other/', ...names]));
    const renamed = told.filter((event) => event.startsWith('rename'));
    expect(renamed.map((event) => event.split(' -> ')[1]).sort()).toEqual(names.sort());
  });

  withTool('mv', 'mv of a tree of 5 000 files, in and within: within it is one event', async () => {
    for (let i = 0; i < 100; i++) mkdirSync(join(tree.base, 'many', `d${i}`), { recursive: true });
    for (let i = 0; i < 5_000; i++) writeFileSync(join(tree.base, 'many', `d${i % 100}`, `f${i}`), '');
    await watch();
    const moved_in = await follow(() => run('mv', [join(tree.base, 'many'), 'a']));
    expect(moved_in).toHaveLength(5_101);
    mkdirSync(tree.at('deep'));
    expect(await follow(() => run('mv', ['a', 'deep/b']))).toEqual(['rename a -> deep/b']);
    await follow(() => run('mv', ['deep/b/d7', join(tree.base, 'out')]));
    await follow(() => run('rm', ['-r', 'deep']));
  });
});

describe('a save is told, with the last content', () => {
  const names_saved = (event: string) => /^(write|create) f$|-> f$/.test(event);

  for (const way of ['yes', 'no', 'auto']) {
    withTool('vim', `by vim with backupcopy=${way}`, async () => {
      tree.make('f');
      await watch();
      const save = (text: string) => {
        const set = `set nocp backupcopy=${way} writebackup swapfile directory=. backupdir=.`;
        return run('vim', [
          '-u',
          'NONE',
          '-i',
          'NONE',
          '-es',
          '-c',
          set,
          '-c',
          `normal Go${text}`,
          '-c',
          'wq',
          'f',
        ]);
      };
      for (const text of ['one', 'two', 'three']) {
        expect((await follow(() => save(text))).filter(names_saved), text).not.toEqual([]);
      }
      expect(content(tree.at('f'))).toBe('content\none\ntwo\nthree\n');
    });
  }

  it('by the system calls of VS Code: cut short and written again', async () => {
    tree.make('f');
    await watch();
    for (const text of ['longer than before', 'short', '']) {
      const told = await follow(() => {
        const file = openSync(tree.at('f'), 'r+');
        ftruncateSync(file, 0);
        writeSync(file, text);
        closeSync(file);
      });
      expect(told).toEqual(['write f']);
    }
  });

  it('by the system calls of VS Code for files of another user: a temporary renamed over it', async () => {
    tree.make('f');
    await watch();
    for (const text of ['one', 'three']) {
      const told = await follow(() => {
        writeFileSync(tree.at('f.vsctmp'), text);
        renameSync(tree.at('f.vsctmp'), tree.at('f'));
      });
      expect(told.at(-1)).toBe('rename f.vsctmp -> f');
    }
  });
});
