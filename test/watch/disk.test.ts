import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WatchedTree } from '../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

describe('the disk', () => {
  it('is looked at without following symbolic links', async () => {
    tree.make('./');
    await tree.start();
    mkdirSync(join(tree.base, 'outside'));
    expect(await tree.told_since(() => symlinkSync(join(tree.base, 'outside'), tree.at('l')))).toEqual([
      'create l',
    ]);
    expect(await tree.told_since(() => writeFileSync(join(tree.base, 'outside', 'f'), ''))).toEqual([]);
    expect(await tree.told_since(() => symlinkSync('.', tree.at('loop')))).toEqual(['create loop']);
  });
});
