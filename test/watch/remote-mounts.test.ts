import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { disk } from '../../src/watch/disk.ts';
import { emptyTree } from '../../src/watch/index/stored-tree.ts';
import { RemoteMounts } from '../../src/watch/remote-mounts.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { IS_ROOT } from '../support/rights.ts';
import { until, WatchedTree } from '../support/watch/watched-tree.ts';

const LIMITS = { names: 500, found: 300 };
const MINUTE_MS = 60_000;
const program = join(import.meta.dirname, '../../fixtures/programs/restless-fuse.mjs');
const can_mount = IS_ROOT && existsSync('/dev/fuse');

let tree: WatchedTree;
let server: ChildProcess | null = null;
let mounted = '';
const warnings: { path?: string; file_system?: string }[] = [];

async function mount(how: string, at: string): Promise<void> {
  server = spawn(process.execPath, [program, how, at], { stdio: ['pipe', 'pipe', 'inherit'] });
  mounted = at;
  await once(server.stdout as NodeJS.ReadableStream, 'data');
}

async function unmount(): Promise<void> {
  const ended = server && once(server, 'exit');
  execFileSync('umount', ['-l', mounted]);
  await ended;
  server = null;
}

afterEach(async () => {
  if (!tree) return;
  await tree.engine?.stop();
  if (server) await unmount();
  await tree.close();
  warnings.length = 0;
});

async function watched(): Promise<void> {
  const warn = (fields: object) => warnings.push(fields);
  tree = new WatchedTree({ remote_limits: LIMITS, log: { debug: () => {}, info: () => {}, warn } });
  tree.make('m/', 'a');
  await tree.start();
}

const isAside = () => tree.engine.status().degraded?.includes('changes too much or has too many names');

describe.runIf(can_mount)('a hostile file system below the watched directory', () => {
  test.each([
    ['gives other names at each look', 'names'],
    ['gives other files at each look', 'identity'],
    ['has directories without end below each other', 'deep'],
  ])('that %s is set aside, and the rest goes on being watched', { timeout: 60_000 }, async (_, how) => {
    await watched();
    await mount(how, tree.at('m'));
    await tree.engine.reconcile('test');
    while (!isAside())
      await until(
        () => isAside() === true,
        () => tree.engine.status(),
      ).catch(() => {});
    expect(warnings).toMatchObject([{ path: tree.at('m'), file_system: 'fuse' }]);
    await tree.settled();
    const count = tree.told().length;
    // One listing is taken up before anything of it is known to be too much.
    expect(tree.engine.status().index_size).toBeLessThan(3 * LIMITS.names);
    expect(count).toBeLessThan(3 * (LIMITS.names + LIMITS.found));
    await tree.engine.reconcile('test');
    expect(await tree.told_since(() => tree.append('a'))).toEqual(['write a']);
    expect(tree.told()).toHaveLength(count + 1);
    await unmount();
    await tree.engine.reconcile('test');
    await tree.settled();
    expect(tree.engine.status()).toMatchObject({ queued: 0, degraded: null });
    expect(await tree.told_since(() => tree.make('m/b'))).toContain('create m/b');
  });

  test('that is mounted over the watched directory is set aside, until it is unmounted', async () => {
    await watched();
    await mount('names', tree.top);
    await tree.engine.reconcile('test');
    await until(
      () => isAside() === true && tree.engine.status().state === 'waiting',
      () => tree.engine.status(),
    );
    expect(tree.told().length).toBeLessThan(3 * (LIMITS.names + LIMITS.found));
    await unmount();
    await until(
      () => tree.engine.status().state === 'watching' && tree.engine.status().queued === 0,
      () => tree.engine.status(),
    );
    expect(await tree.told_since(() => tree.append('a'))).toEqual(['write a']);
  });

  test('that lists without an end is left out, and takes no memory', async () => {
    await watched();
    await mount('endless', tree.at('m'));
    await tree.engine.reconcile('test');
    expect(tree.engine.status().degraded).toContain('1 directories cannot be read');
    expect(tree.engine.status().index_size).toBe(2);
    expect(await tree.told_since(() => tree.append('a'))).toEqual(['write a']);
  });
});

describe('the limits of a remote file system', () => {
  const DEV = 7;

  function mounts(kind: 'remote' | 'disk' = 'remote') {
    const clock = new ManualClock();
    const known = emptyTree('/w');
    const stat = { dev: DEV, ino: 1, birth: 0, mode: 0o40755, uid: 0, gid: 0, size: 0, mtime: 0 };
    const dir = known.add(known.root, 'm', { ...stat, ctime: 0, links: 1 });
    const log = { warn: () => {} };
    const found = { ...disk, fileSystem: () => ({ kind, name: 'nfs' }) };
    const remote = new RemoteMounts({ tree: known, clock, disk: found, log, remote_limits: LIMITS });
    remote.noteRoot(1);
    remote.check(known.root);
    remote.check(dir);
    const takeAll = (count: number) => Array.from({ length: count }, () => remote.takes(DEV, true));
    return { remote, clock, known, dir, takeAll };
  }

  test('hold for what is found within ten minutes, and are lifted ten minutes later', async () => {
    const { remote, clock, takeAll } = mounts();
    expect(takeAll(LIMITS.found)).not.toContain(false);
    await clock.advance(10 * MINUTE_MS);
    expect(takeAll(LIMITS.found + 1).indexOf(false)).toBe(LIMITS.found);
    expect([remote.isAside(DEV), remote.aside()]).toEqual([true, ['nfs at "/w/m"']]);
    await clock.advance(10 * MINUTE_MS - 1);
    expect(remote.takes(DEV, false)).toBe(false);
    await clock.advance(1);
    expect([remote.isAside(DEV), remote.takes(DEV, true), remote.aside()]).toEqual([false, true, []]);
  });

  test('count what a directory holds when it is listed first as names alone', () => {
    const { remote, known, dir } = mounts();
    for (let i = 1; i < LIMITS.names; i++) {
      expect(remote.takes(DEV, false)).toBe(true);
      known.add(dir, String(i), { ...dir, ino: i + 1, ctime: 0, links: 1 });
    }
    expect(remote.takes(DEV, false)).toBe(false);
  });

  test('do not exist for local ones, nor for that which watch_dir was on at the start', () => {
    expect(mounts('disk').takeAll(2 * LIMITS.found)).not.toContain(false);
    const { remote, known } = mounts();
    for (let i = 0; i < 2 * LIMITS.found; i++) expect(remote.takes(0, true)).toBe(true);
    expect([remote.listMax(0), remote.listMax(DEV)]).toEqual([null, LIMITS.names]);
    remote.noteRoot(2); // mounted over it later
    remote.check(known.root);
    for (let i = 0; i < LIMITS.found; i++) remote.takes(0, true);
    expect(remote.takes(0, true)).toBe(false);
  });
});
