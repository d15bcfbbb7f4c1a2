import { mkdirSync, readdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { EngineOptions } from '../../src/watch/engine.ts';
import { until, WatchedTree } from '../support/watch/watched-tree.ts';

let tree: WatchedTree;

const watched = (options: Partial<EngineOptions> = {}) => {
  tree = new WatchedTree(options);
  return tree;
};

afterEach(() => tree.close());

describe('an outbox that takes nothing', () => {
  it('has changes coalesced per path until there is room', async () => {
    watched().make('a', 'b');
    await tree.start();
    tree.store.answer = 'full';
    for (let i = 0; i < 3; i++) {
      const commits = tree.store.commits;
      tree.append('a');
      tree.make(`new/${i}`);
      await until(
        () => tree.store.commits > commits,
        () => tree.engine.status(),
      );
    }
    unlinkSync(tree.at('b'));
    expect(tree.told()).toEqual([]);
    tree.store.answer = 'committed';
    const told = await tree.settled();
    expect(told.filter((event) => !event.startsWith('write new')).sort()).toEqual([
      'create new',
      'create new/0',
      'create new/1',
      'create new/2',
      'remove b',
      'write a',
    ]);
  });

  it('does not delay the start, and the first index follows', async () => {
    watched().make('a', 'd/b');
    tree.store.answer = 'unavailable';
    await tree.start();
    expect(tree.engine.status().state).toBe('starting');
    tree.store.answer = 'committed';
    await until(
      () => tree.engine.status().state === 'watching',
      () => tree.engine.status(),
    );
    expect(tree.told()).toEqual([]);
    expect(await tree.told_since(() => tree.append('d/b'))).toEqual(['write d/b']);
  });
});

describe('many changes', () => {
  it('are committed in bounded parts', async () => {
    watched().make('./');
    await tree.start();
    await tree.told_since(() => {
      for (let i = 0; i < 3_000; i++) tree.make(`d${i % 7}/f${i}`);
    });
    expect(tree.told().filter((event) => event.startsWith('create'))).toHaveLength(3_007);
    await tree.told_since(() => {
      for (const name of readdirSync(tree.top)) {
        if (name.startsWith('d')) renameSync(tree.at(name), join(tree.base, name));
      }
    });
    expect(tree.told().filter((event) => event.startsWith('remove'))).toHaveLength(3_007);
    expect(tree.store.largest_commit).toBeLessThanOrEqual(1_000);
  }, 120_000);

  it('leave the outbox to publishers between two commits', async () => {
    watched().make('./');
    await tree.start();
    const commit = tree.store.commit.bind(tree.store);
    const gaps_ms: number[] = [];
    let last_end_ms = Number.NaN;
    tree.store.commit = async (batch) => {
      gaps_ms.push(performance.now() - last_end_ms);
      await new Promise((resolve) => setTimeout(resolve, 20));
      last_end_ms = batch.events.length >= 25 ? performance.now() : Number.NaN;
      return commit(batch);
    };
    await tree.told_since(() => {
      for (let i = 0; i < 500; i++) tree.make(`f${i}`);
    });
    const after_crowded = gaps_ms.filter((gap_ms) => !Number.isNaN(gap_ms));
    expect(after_crowded.length).toBeGreaterThanOrEqual(4);
    expect(Math.min(...after_crowded)).toBeGreaterThanOrEqual(1.5);
  });

  it('in many new directories that disappear at once are all reported', async () => {
    watched().make('./');
    await tree.start();
    await tree.told_since(() => {
      for (let i = 0; i < 4_000; i++) tree.make(`t/p${i % 20}/q${i % 400}/f${i}`);
    });
    await tree.told_since(() => rmSync(tree.at('t'), { recursive: true }));
    expect(tree.told().filter((event) => event.startsWith('remove'))).toHaveLength(4_421);
    expect(tree.engine.status()).toMatchObject({ queued: 0, directories_watched: 1 });
  }, 120_000);
});

describe('a directory', () => {
  it('that is new is searched for what was made in it before it was watched', async () => {
    watched().make('./');
    await tree.start();
    const told = await tree.told_since(() => {
      mkdirSync(tree.at('a/b/c'), { recursive: true });
      writeFileSync(tree.at('a/b/c/f'), '');
      writeFileSync(tree.at('a/g'), '');
    });
    expect([...told].sort()).toEqual([
      'create a',
      'create a/b',
      'create a/b/c',
      'create a/b/c/f',
      'create a/g',
    ]);
  });

  it('made again under the same name is watched again', async () => {
    watched().make('s/a');
    await tree.start();
    const told = await tree.told_since(() => {
      rmSync(tree.at('s'), { recursive: true });
      mkdirSync(tree.at('s'));
      writeFileSync(tree.at('s/b'), '');
    });
    expect(told).toEqual(['remove s/a', 'remove s', 'create s', 'create s/b']);
    expect(await tree.told_since(() => tree.append('s/b'))).toEqual(['write s/b']);
  });

  it('that is moved in is watched with everything in it', async () => {
    watched().make('./');
    await tree.start();
    const outside = join(tree.base, 'in');
    mkdirSync(join(outside, 'u'), { recursive: true });
    writeFileSync(join(outside, 'u', 'b'), 'x');
    expect(await tree.told_since(() => renameSync(outside, tree.at('in')))).toEqual([
      'create in',
      'create in/u',
      'create in/u/b',
    ]);
    expect(await tree.told_since(() => tree.append('in/u/b'))).toEqual(['write in/u/b']);
  });

  it('that is moved out is no longer watched', async () => {
    watched().make('t/b');
    await tree.start();
    const outside = join(tree.base, 'out');
    expect(await tree.told_since(() => renameSync(tree.at('t'), outside))).toEqual([
      'remove t/b',
      'remove t',
    ]);
    expect(await tree.told_since(() => writeFileSync(join(outside, 'n'), ''))).toEqual([]);
  });
});
