import { expect, it } from 'vitest';
import { QuietCollection } from '../../../src/outbox/sqlite/quiet-collection.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function collecting(flags: string[] = []) {
  const clock = new ManualClock();
  const counted = { collections: 0 };
  const collect = () => {
    counted.collections += 1;
  };
  return { clock, counted, collection: new QuietCollection(clock, collect, flags) };
}

it('collects once the start is over and nothing is to be done', async () => {
  const { clock, counted, collection } = collecting();
  for (let i = 0; i < 40; i++) {
    collection.noteWork();
    await clock.advance(50);
  }
  expect(counted.collections).toBe(0);
  await clock.advance(60);
  expect([counted.collections, clock.timers]).toEqual([1, 0]);
});

it('collects what a start leaves behind not before that is over', async () => {
  const { clock, counted, collection } = collecting();
  collection.noteWork();
  await clock.advance(1_400);
  expect(counted.collections).toBe(0);
  await clock.advance(200);
  expect(counted.collections).toBe(1);
});

it('collects again after work alone, once a minute at most', async () => {
  const { clock, counted, collection } = collecting();
  collection.noteWork();
  await clock.advance(120_000);
  expect(counted.collections).toBe(1);
  for (let i = 0; i < 90; i++) {
    collection.noteWork();
    await clock.advance(1_000);
  }
  expect(counted.collections).toBe(3);
});

it('keeps the code of a program whose code is recorded', () => {
  const { clock, collection } = collecting(['--no-flush-bytecode']);
  collection.noteWork();
  expect(clock.timers).toBe(0);
});
