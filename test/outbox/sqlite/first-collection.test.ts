import { expect, it } from 'vitest';
import { FirstCollection } from '../../../src/outbox/sqlite/first-collection.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function collecting(flags: string[] = []) {
  const clock = new ManualClock();
  const counted = { collections: 0 };
  const collect = () => {
    counted.collections += 1;
  };
  return { clock, counted, collection: new FirstCollection(clock, collect, flags) };
}

it('collects once the start is over and nothing is to be done', async () => {
  const { clock, counted, collection } = collecting();
  for (let i = 0; i < 40; i++) {
    collection.noteRows(2);
    await clock.advance(50);
  }
  expect(counted.collections).toBe(0);
  await clock.advance(60);
  expect([counted.collections, clock.timers]).toEqual([1, 0]);
});

it('collects what a start leaves behind not before that is over, and only once', async () => {
  const { clock, counted, collection } = collecting();
  collection.noteRows(1);
  await clock.advance(1_400);
  expect(counted.collections).toBe(0);
  await clock.advance(200);
  expect(counted.collections).toBe(1);
  collection.noteRows(1);
  expect(clock.timers).toBe(0);
});

it('takes no code away from a thread that is busy from the beginning', async () => {
  const { clock, counted, collection } = collecting();
  for (let i = 0; i < 12; i++) collection.noteRows(100);
  await clock.advance(5_000);
  collection.noteRows(1);
  expect([counted.collections, clock.timers]).toEqual([0, 0]);
});

it('keeps the code of a program whose code is recorded', () => {
  const { clock, collection } = collecting(['--no-flush-bytecode']);
  collection.noteRows(1);
  expect(clock.timers).toBe(0);
});
