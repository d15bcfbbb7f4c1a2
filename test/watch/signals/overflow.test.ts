import { afterEach, describe, it } from 'vitest';
import type { EngineOptions } from '../../../src/watch/engine-options.ts';
import { until, WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

const watched = (options: Partial<EngineOptions> = {}) => {
  tree = new WatchedTree(options);
  return tree;
};

afterEach(() => tree.close());

describe('many signals at once', () => {
  it('have the tree compared when the kernel may have dropped some of them', async () => {
    watched({ queue_length: 40 }).make('./');
    await tree.start();
    for (let i = 0; i < 50; i++) tree.make(`f${i}`);
    await until(
      () => tree.engine.status().reconciles.overflow === 1,
      () => tree.engine.status(),
    );
  });
});
