import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { ChokidarWatches, type OnSignal } from '../../../src/watch/signals/directory-watch.ts';
import { eventually } from '../../support/eventually.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { WatchedTree } from '../../support/watch/watched-tree.ts';

/** Many watches at once, and what they have signalled: `<kind> <name>`, with `own` where it may be the directory itself. */
function watching() {
  const watches = new ChokidarWatches();
  onTestFinished(() => watches.close());
  const signals: string[] = [];
  const onSignal: OnSignal = (signal, name, own) => signals.push(`${signal} ${name}${own ? ' own' : ''}`);
  const watch = (path: string) => {
    const stop = watches.watch(path, onSignal);
    if (typeof stop !== 'function') throw new Error(stop);
    return stop;
  };
  return { watches, signals, onSignal, watch };
}

/** How many watches the kernel keeps for this process. */
function kernelWatches(): number {
  return readdirSync('/proc/self/fdinfo')
    .map((fd) => {
      try {
        return readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1');
      } catch {
        return ''; // the descriptor of the listing itself
      }
    })
    .reduce((sum, info) => sum + (info.match(/^inotify wd:/gm)?.length ?? 0), 0);
}

describe('a watch on a directory', () => {
  it('signals what happens to its entries, by name', async () => {
    const folder = scratchFolder();
    const { signals, watch } = watching();
    watch(folder);
    writeFileSync(join(folder, 'a'), 'x');
    await eventually(() => expect(signals).toContain('rename a'));
    appendFileSync(join(folder, 'a'), 'y');
    await eventually(() => expect(signals).toContain('change a'));
    renameSync(join(folder, 'a'), join(folder, 'b'));
    await eventually(() => expect(signals).toContain('rename b'));
  });

  it('is one watch of the kernel, whatever is in the directory, and none once it is stopped', async () => {
    const folder = scratchFolder();
    mkdirSync(join(folder, 'sub', 'deep'), { recursive: true });
    for (let n = 0; n < 20; n++) writeFileSync(join(folder, `file-${n}`), 'x');
    const before = kernelWatches();
    const { signals, watch } = watching();
    const stop = watch(folder);
    expect(kernelWatches()).toBe(before + 1);
    // What chokidar would do upon a signal: look at the new entries, and watch them.
    mkdirSync(join(folder, 'new'));
    writeFileSync(join(folder, 'sub', 'unseen'), 'x');
    await eventually(() => expect(signals).toContain('rename new'));
    expect(kernelWatches()).toBe(before + 1);
    expect(signals.filter((signal) => signal.includes('unseen'))).toEqual([]);
    stop();
    await eventually(() => expect(kernelWatches()).toBe(before));
  });

  it('can be set again after it was stopped', async () => {
    const folder = scratchFolder();
    const { signals, watch } = watching();
    watch(folder)();
    watch(folder);
    writeFileSync(join(folder, 'a'), 'x');
    await eventually(() => expect(signals).toContain('rename a'));
  });

  it('says that the directory itself may be meant where an entry has its name', async () => {
    const folder = join(scratchFolder(), 'same');
    mkdirSync(folder);
    const { signals, watch } = watching();
    watch(folder);
    writeFileSync(join(folder, 'same'), 'x');
    await eventually(() => expect(signals).toContain('rename same own'));
    rmSync(folder, { recursive: true });
    await eventually(() =>
      expect(signals.filter((each) => each === 'rename same own').length).toBeGreaterThan(1),
    );
  });

  it.each(['back\\slash', 'plain'])('is set on a name such as %s', async (name) => {
    const folder = join(scratchFolder(), name);
    mkdirSync(folder);
    const { signals, watch } = watching();
    watch(folder);
    writeFileSync(join(folder, 'a'), 'x');
    await eventually(() => expect(signals).toContain('rename a'));
  });

  it.each(['back\\slash', 'plain'])('says that there is no directory such as %s', (name) => {
    const { watches, onSignal } = watching();
    expect(watches.watch(join(scratchFolder(), name), onSignal)).toBe('gone');
  });

  it('stops with all others', async () => {
    const before = kernelWatches();
    const { watches, watch } = watching();
    for (let n = 0; n < 3; n++) watch(scratchFolder());
    expect(kernelWatches()).toBe(before + 3);
    await watches.close();
    await eventually(() => expect(kernelWatches()).toBe(before));
  });
});

describe('the watch of a tree', () => {
  let tree: WatchedTree;

  beforeEach(() => {
    tree = new WatchedTree();
  });

  afterEach(() => tree.close());

  it.each(['new\nline', 'back\\slash', '*glob?[x]', '\ufffd', 'x~', '..a', '-', 'L'.repeat(255)])(
    'works on a directory called %j',
    async (name) => {
      tree.make(`${name}/f`);
      await tree.start();
      expect(await tree.told_since(() => appendFileSync(tree.at(`${name}/f`), 'x'))).toEqual([
        `write ${name}/f`,
      ]);
      expect(await tree.told_since(() => writeFileSync(tree.at(`${name}/n`), ''))).toEqual([
        `create ${name}/n`,
      ]);
    },
  );

  it('tells a child that has the name of its directory', async () => {
    tree.make('a/z');
    await tree.start();
    expect(await tree.told_since(() => writeFileSync(tree.at('a/a'), 'x'))).toEqual([
      'create a/a',
      'write a/a',
    ]);
    expect(await tree.told_since(() => unlinkSync(tree.at('a/a')))).toEqual(['remove a/a']);
  });

  it('misses nothing when an entry that has the name of its directory is removed', async () => {
    tree.make('a/');
    await tree.start();
    const made: string[] = [];
    for (let turns = 1; turns <= 4; turns++) {
      mkdirSync(tree.at('a/a'));
      await tree.settled();
      rmdirSync(tree.at('a/a'));
      await answeredTurns(turns);
      writeFileSync(tree.at(`a/after-${turns}`), '');
      made.push(`create a/after-${turns}`);
    }
    expect(await tree.settled()).toEqual(expect.arrayContaining(made));
  });
});

/** Turns of the event loop in which what was asked of the thread pool, as chokidar does, is answered. */
async function answeredTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await nextTurn();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
  }
}
