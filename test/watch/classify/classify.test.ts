import { chmodSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

describe('the five operations', () => {
  it('tells a new file and its content', async () => {
    tree.make('./');
    await tree.start();
    expect(await tree.told_since(() => writeFileSync(tree.at('a'), 'x'))).toEqual(['create a', 'write a']);
  });

  it('tells an empty file as created only', async () => {
    tree.make('./');
    await tree.start();
    expect(await tree.told_since(() => writeFileSync(tree.at('a'), ''))).toEqual(['create a']);
  });

  it('tells a write, a chmod and a remove of a known file', async () => {
    tree.make('a');
    await tree.start();
    expect(await tree.told_since(() => tree.append('a'))).toEqual(['write a']);
    expect(await tree.told_since(() => chmodSync(tree.at('a'), 0o600))).toEqual(['chmod a']);
    expect(await tree.told_since(() => unlinkSync(tree.at('a')))).toEqual(['remove a']);
  });

  it('tells a move within the tree as one rename', async () => {
    tree.make('a', 'p/', 'q/');
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('a'), tree.at('p/b')))).toEqual([
      'rename a -> p/b',
    ]);
    expect(await tree.told_since(() => renameSync(tree.at('p/b'), tree.at('q/b')))).toEqual([
      'rename p/b -> q/b',
    ]);
  });

  it('tells a moved directory as one event and goes on inside it', async () => {
    tree.make('t/a', 't/u/b');
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('t'), tree.at('T')))).toEqual(['rename t -> T']);
    expect(await tree.told_since(() => tree.append('T/u/b'))).toEqual(['write T/u/b']);
    expect(await tree.told_since(() => writeFileSync(tree.at('T/u/n'), ''))).toEqual(['create T/u/n']);
  });

  it('tells a moved tree of 5 000 files as one event', async () => {
    for (let i = 0; i < 5_000; i++) tree.make(`t/${i % 50}/${i}`);
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('t'), tree.at('moved')))).toEqual([
      'rename t -> moved',
    ]);
    expect(await tree.told_since(() => tree.append('moved/7/7'))).toEqual(['write moved/7/7']);
  }, 120_000);

  it('does not take a for ab when a is renamed', async () => {
    tree.make('a/f', 'ab/f');
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('a'), tree.at('c')))).toEqual(['rename a -> c']);
    expect(await tree.told_since(() => tree.append('ab/f'))).toEqual(['write ab/f']);
  });
});

describe('directories', () => {
  it('tells everything in a removed directory, children first', async () => {
    tree.make('t/u/b');
    await tree.start();
    expect(await tree.told_since(() => rmSync(tree.at('t'), { recursive: true }))).toEqual([
      'remove t/u/b',
      'remove t/u',
      'remove t',
    ]);
  });
});
