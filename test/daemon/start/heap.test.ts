import { expect, it } from 'vitest';
import { settleHeap, tightenHeap } from '../../../src/daemon/start/heap.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const A_MOMENT_MS = 2_000;

function settling(flags: string[] = []) {
  const clock = new ManualClock();
  const counted = { collections: 0 };
  const collect = () => {
    counted.collections += 1;
  };
  settleHeap(clock, collect, flags);
  return { clock, counted };
}

it('collects what a start leaves behind once, a moment later', async () => {
  const { clock, counted } = settling();
  expect(counted.collections).toBe(0);
  await clock.advance(A_MOMENT_MS);
  await clock.advance(A_MOMENT_MS);
  expect([counted.collections, clock.timers]).toEqual([1, 0]);
});

it('leaves a program alone whose code is to be kept', () => {
  expect(settling(['--no-opt', '--no-flush-bytecode']).clock.timers).toBe(0);
});

it('does not stop a program whose records flow by then', async () => {
  const { clock, counted } = settling();
  tightenHeap();
  await clock.advance(A_MOMENT_MS);
  expect(counted.collections).toBe(0);
});
