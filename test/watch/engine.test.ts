import { renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { EngineOptions } from '../../src/watch/engine.ts';
import { WatchedTree } from '../support/watch/watched-tree.ts';

let tree: WatchedTree;

const watched = (options: Partial<EngineOptions> = {}) => {
  tree = new WatchedTree(options);
  return tree;
};

afterEach(() => tree.close());

describe('the last known tree', () => {
  it('is what exists at the very first start, without events', async () => {
    watched().make('a', 'd/b', 'e/');
    await tree.start();
    expect(tree.engine.status()).toMatchObject({ state: 'watching', index_size: 4, directories_watched: 3 });
    expect(tree.told()).toEqual([]);
    await tree.restart(() => {});
    expect(tree.told()).toEqual([]);
  });

  it('gives the differences of a time without the daemon, once', async () => {
    watched().make('keep', 'write', 'gone', 'old', 't/u/x');
    await tree.start();
    await tree.restart(() => {
      tree.append('write');
      unlinkSync(tree.at('gone'));
      renameSync(tree.at('old'), tree.at('new'));
      renameSync(tree.at('t'), tree.at('T'));
      tree.make('d/f');
    });
    expect(tree.told().sort()).toEqual([
      'create d',
      'create d/f',
      'remove gone',
      'rename old -> new',
      'rename t -> T',
      'write write',
    ]);
    const count = tree.told().length;
    await tree.restart(() => {});
    expect(tree.told()).toHaveLength(count);
  });

  it('gives one write for a file that was replaced meanwhile, and nothing for a copy with the same content', async () => {
    watched().make('replaced', 'same');
    await tree.start();
    await tree.restart(() => {
      writeFileSync(tree.at('.tmp'), 'other content');
      renameSync(tree.at('.tmp'), tree.at('replaced'));
    });
    expect(tree.told()).toEqual(['write replaced']);
  });

  it('is made anew where the first index was never finished', async () => {
    watched().make('a', 'b');
    await tree.start();
    await tree.engine.stop();
    tree.store.rows.delete(1);
    unlinkSync(tree.at('a'));
    await tree.start();
    expect(tree.told()).toEqual([]);
    expect(tree.store.rows.size).toBe(2);
    expect(await tree.told_since(() => tree.append('b'))).toEqual(['write b']);
  });

  it('is not taken for that of another directory', async () => {
    watched().make('a');
    await tree.start();
    await tree.engine.stop();
    const other = new WatchedTree();
    for (const [id, entry] of tree.store.rows) other.store.rows.set(id, entry);
    other.make('b');
    await other.start();
    expect(other.told()).toEqual([]);
    expect(other.engine.status().index_size).toBe(1);
    await other.close();
  });
});
