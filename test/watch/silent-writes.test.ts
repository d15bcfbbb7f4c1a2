import { closeSync, openSync, statSync, truncateSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { libc } from '../../src/base/linux/libc.ts';
import type { FileStat } from '../../src/watch/index/file-stat.ts';
import { COMPARED_AT_ONCE, RESCAN_MIN_MS, SILENT_SHARE } from '../../src/watch/index/limits.ts';
import { Tree } from '../../src/watch/index/tree.ts';
import { TreeNode } from '../../src/watch/index/tree-node.ts';
import { PendingNames } from '../../src/watch/signals/pending-names.ts';
import { SilentWrites } from '../../src/watch/silent-writes.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until, WatchedTree } from '../support/watch/watched-tree.ts';

const FILE = 0o100644;
const DIRECTORY = 0o040755;
const MISSING = 'missing' as const;

function stat(ino: number, more: Partial<FileStat> = {}): FileStat {
  const same = { dev: 0, birth: 1, uid: 0, gid: 0, size: 1, mtime: 1, ctime: 1, links: 1 };
  return { ...same, ino, mode: FILE, ...more };
}

/** A directory of so many files, whose probes take a millisecond each; `changed`: how each name looks now. */
function trial(files: number, clock = new ManualClock()) {
  const root = new TreeNode(1, null, '/w', stat(1, { mode: DIRECTORY }));
  const tree = new Tree(root);
  const names = Array.from({ length: files }, (_, i) => `f${i}`);
  for (const [i, name] of names.entries()) tree.add(root, name, stat(i + 2));
  tree.commit();
  const pending = new PendingNames(clock);
  const changed = new Map<string, FileStat | typeof MISSING>();
  const state = { probes: 0, takes: true };
  const prober = {
    places: () => () => true,
    probe: (_: TreeNode, name: string) => {
      state.probes++;
      clock.freeze(1);
      return changed.get(name) ?? stat(names.indexOf(name) + 2);
    },
  };
  const mounts = { isAside: () => false, takes: () => state.takes };
  const options = { tree, pending, prober, mounts, clock } as unknown as ConstructorParameters<
    typeof SilentWrites
  >[0];
  return { clock, root, tree, pending, changed, state, silent: new SilentWrites(options) };
}

describe('the comparison of what was signalled', () => {
  it('is one round for all signals before it, and begins when they may be over', () => {
    const { clock, root, state, silent } = trial(3);
    expect(silent.nextDueMs()).toBeNull();
    for (let i = 0; i < 1_000; i++) silent.signal(root);
    expect(silent.nextDueMs()).toBe(RESCAN_MIN_MS);
    silent.run(true);
    expect(state.probes).toBe(0);
    clock.freeze(RESCAN_MIN_MS);
    silent.run(true);
    expect([state.probes, silent.is_comparing, silent.nextDueMs()]).toEqual([3, false, null]);
  });

  it('is done in portions, and takes its share of the time at most, whatever is signalled', () => {
    const files = 2 * COMPARED_AT_ONCE;
    const { clock, root, state, silent } = trial(files);
    silent.signal(root);
    clock.freeze(RESCAN_MIN_MS);
    silent.run(true);
    expect(state.probes).toBeLessThanOrEqual(COMPARED_AT_ONCE);
    expect(silent.nextDueMs()).toBe(clock.monotonicMs());
    while (silent.is_comparing) {
      silent.signal(root);
      silent.run(true);
    }
    expect(state.probes).toBe(files);
    expect(silent.nextDueMs()).toBe(clock.monotonicMs() + files * SILENT_SHARE);
  });

  it('goes on while the clock does', () => {
    class RunningClock extends ManualClock {
      override monotonicMs(): number {
        this.freeze(0.001);
        return super.monotonicMs();
      }
    }
    const { clock, root, state, silent } = trial(2 * COMPARED_AT_ONCE, new RunningClock());
    silent.signal(root);
    clock.freeze(RESCAN_MIN_MS);
    for (let i = 0; i < 3; i++) silent.run(true);
    expect([state.probes, silent.is_comparing]).toEqual([2 * COMPARED_AT_ONCE, false]);
  });

  it('ends where names come and go meanwhile', () => {
    const { clock, root, tree, state, silent } = trial(2 * COMPARED_AT_ONCE);
    silent.signal(root);
    clock.freeze(RESCAN_MIN_MS);
    for (let ino = 10_000; ; ino++) {
      silent.run(true);
      if (!silent.is_comparing) break;
      for (let i = 0; i < COMPARED_AT_ONCE; i++) tree.add(root, `new-${ino}-${i}`, stat(ino * 1_000 + i));
      tree.commit();
    }
    expect(state.probes).toBe(2 * COMPARED_AT_ONCE);
  });

  it('finds other content of the same file, and looks again until it finds no more', () => {
    const { clock, root, pending, changed, silent } = trial(6);
    changed.set('f0', stat(2, { mtime: 2 }));
    changed.set('f1', stat(3, { size: 2 }));
    changed.set('f2', stat(99, { mtime: 2 }));
    changed.set('f3', MISSING);
    changed.set('f4', stat(6, { mode: 0o100600 }));
    const round = () => {
      clock.freeze(RESCAN_MIN_MS);
      silent.run(true);
      return pending.take(10).map(({ name }) => name);
    };
    silent.signal(root);
    round();
    clock.freeze(RESCAN_MIN_MS);
    expect(pending.take(10).map(({ name }) => name)).toEqual(['f0', 'f1']);
    expect(silent.nextDueMs()).not.toBeNull();
    changed.clear();
    expect(round()).toEqual([]);
    expect(silent.nextDueMs()).toBeNull();
  });

  it('leaves to their signals what is pending, and to its limit what a remote file system makes up', () => {
    const { clock, root, pending, changed, state, silent } = trial(2);
    changed.set('f0', stat(2, { mtime: 2 }));
    pending.signal(root, 'f0', 'change', false);
    changed.set('f1', stat(3, { mtime: 2 }));
    state.takes = false;
    silent.signal(root);
    clock.freeze(RESCAN_MIN_MS);
    silent.run(true);
    expect([pending.size, silent.nextDueMs()]).toEqual([1, null]);
  });

  it('is given up where the tree is not there', () => {
    const { clock, root, state, silent } = trial(2);
    silent.signal(root);
    clock.freeze(RESCAN_MIN_MS);
    silent.run(false);
    expect([state.probes, silent.nextDueMs()]).toEqual([0, null]);
  });
});

const mapping = {
  map: libc.func('void *mmap(void *at, size_t length, int protection, int flags, int fd, long offset)'),
  set: libc.func('void *memset(void *at, int byte, size_t length)'),
  sync: libc.func('int msync(void *at, size_t length, int flags)'),
  unmap: libc.func('int munmap(void *at, size_t length)'),
};
const PAGE = 4096;
const READ_AND_WRITE = 3;
const SHARED = 1;
const SYNCHRONOUS = 4;

/** Ten times as fast as the machine's. */
const fast_clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() * 10,
  after: (delay_ms: number, run: () => void) => systemClock.after(delay_ms / 10, run),
};

let tree: WatchedTree;
afterEach(() => tree?.close());

describe('a write through a mapping', () => {
  it('is told once something else in its directory is signalled', async () => {
    tree = new WatchedTree({ clock: fast_clock });
    tree.make('d/mapped', 'd/other');
    truncateSync(tree.at('d/mapped'), PAGE);
    await tree.start();
    const fd = openSync(tree.at('d/mapped'), 'r+');
    const memory = mapping.map(null, PAGE, READ_AND_WRITE, SHARED, fd, 0);
    closeSync(fd);
    const before_ms = statSync(tree.at('d/mapped')).mtimeMs;
    do mapping.set(memory, 0x61, 5);
    while (
      mapping.sync(memory, PAGE, SYNCHRONOUS) === 0 &&
      statSync(tree.at('d/mapped')).mtimeMs === before_ms
    );
    mapping.unmap(memory, PAGE);
    tree.append('d/other');
    await until(
      () => tree.told().includes('write d/mapped'),
      () => tree.told(),
    );
    expect((await tree.settled()).sort()).toEqual(['write d/mapped', 'write d/other']);
  });
});
