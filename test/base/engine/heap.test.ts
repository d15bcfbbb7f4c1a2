import { once } from 'node:events';
import { Script } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import {
  collectOnce,
  keepHeapSmall,
  SettleWhenQuiet,
  settleAfterStart,
} from '../../../src/base/engine/heap.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const A_MOMENT_MS = 2_000;

/** A clock, and a collection that is only counted. */
function counting() {
  const counted = { collections: 0 };
  const collect = () => {
    counted.collections += 1;
  };
  return { clock: new ManualClock(), counted, collect };
}

describe('a collection', () => {
  it('collects what nothing refers to any more', async () => {
    const gone = new WeakRef({});
    await new Promise(setImmediate);
    collectOnce();
    expect(gone.deref()).toBeUndefined();
  });

  it('leaves the engine as it was: it accepts what was compiled before', () => {
    const source = 'function twice(value) { return 2 * value; } twice(2)';
    const cachedData = new Script(source).createCachedData();
    collectOnce();
    expect(new Script(source, { cachedData }).cachedDataRejected).toBe(false);
  });

  it('ends no thread whose flags another one takes back, which has just collected as well', async () => {
    const program = `for (;;) require('node:v8').setFlagsFromString('--no-expose-gc')`;
    const other = new Worker(program, { eval: true });
    await once(other, 'online');
    for (let i = 0; i < 50; i++) collectOnce();
    await other.terminate();
  });
});

describe('a thread that settles when it is quiet', () => {
  function settling(flags: string[] = []) {
    const { clock, counted, collect } = counting();
    return { clock, counted, thread: new SettleWhenQuiet(clock, collect, flags) };
  }

  it('collects once the start is over and nothing is to be done', async () => {
    const { clock, counted, thread } = settling();
    for (let i = 0; i < 40; i++) {
      thread.noteWork(2);
      await clock.advance(50);
    }
    expect(counted.collections).toBe(0);
    await clock.advance(60);
    expect([counted.collections, clock.timers]).toEqual([1, 0]);
  });

  it('collects what a start leaves behind not before that is over, and only once', async () => {
    const { clock, counted, thread } = settling();
    thread.noteWork(1);
    await clock.advance(1_400);
    expect(counted.collections).toBe(0);
    await clock.advance(200);
    expect(counted.collections).toBe(1);
    thread.noteWork(1);
    expect(clock.timers).toBe(0);
  });

  it('keeps its code if it is busy from the beginning', async () => {
    const { clock, counted, thread } = settling();
    for (let i = 0; i < 12; i++) thread.noteWork(100);
    await clock.advance(5_000);
    thread.noteWork(1);
    expect([counted.collections, clock.timers]).toEqual([0, 0]);
  });

  it('keeps its code if that is recorded', () => {
    const { clock, thread } = settling(['--no-flush-bytecode']);
    thread.noteWork(1);
    expect(clock.timers).toBe(0);
  });
});

describe('a program after its start', () => {
  function settling(flags: string[] = []) {
    const { clock, counted, collect } = counting();
    settleAfterStart(clock, collect, flags);
    return { clock, counted };
  }

  it('collects what a start leaves behind once, a moment later', async () => {
    const { clock, counted } = settling();
    expect(counted.collections).toBe(0);
    await clock.advance(A_MOMENT_MS);
    await clock.advance(A_MOMENT_MS);
    expect([counted.collections, clock.timers]).toEqual([1, 0]);
  });

  it('is left alone if its code is to be kept', () => {
    expect(settling(['--no-opt', '--no-flush-bytecode']).clock.timers).toBe(0);
  });

  // The last test: the heap of this program is small from here on.
  it('is not stopped if its records flow by then', async () => {
    const { clock, counted } = settling();
    keepHeapSmall();
    await clock.advance(A_MOMENT_MS);
    expect(counted.collections).toBe(0);
  });
});
