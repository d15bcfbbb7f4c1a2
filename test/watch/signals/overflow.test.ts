import { afterEach, describe, expect, it } from 'vitest';
import type { EngineOptions } from '../../../src/watch/engine.ts';
import { OverflowGuess } from '../../../src/watch/signals/overflow.ts';
import { ManualClock } from '../../support/manual-clock.ts';
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

describe('an overflow of the queue of signals', () => {
  it('is suspected when half the queue arrives in one turn, and looked into a second later', async () => {
    const clock = new ManualClock();
    let overflows = 0;
    const guess = new OverflowGuess(clock, () => overflows++, 100);
    for (let i = 0; i < 49; i++) guess.signal();
    await clock.advance(5_000);
    expect([guess.suspected, overflows]).toEqual([false, 0]);
    for (let i = 0; i < 50; i++) guess.signal();
    await clock.advance(999);
    expect([guess.suspected, overflows]).toEqual([true, 0]);
    for (let i = 0; i < 50; i++) guess.signal();
    await clock.advance(1);
    expect([guess.suspected, overflows]).toEqual([false, 1]);
    await clock.advance(5_000);
    expect(overflows).toBe(1);
  });

  it('is not suspected of many signals over several turns', async () => {
    const clock = new ManualClock();
    const guess = new OverflowGuess(clock, () => {}, 100);
    for (let turn = 0; turn < 5; turn++) {
      for (let i = 0; i < 30; i++) guess.signal();
      await clock.advance(0);
    }
    expect([guess.suspected, clock.timers]).toEqual([false, 0]);
  });
});
