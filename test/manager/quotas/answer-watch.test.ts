import { beforeEach, describe, expect, it } from 'vitest';
import { AnswerWatch } from '../../../src/manager/quotas/answer-watch.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('the watch over answers', () => {
  let clock: ManualClock;
  let late: number[];
  let watch: AnswerWatch;
  beforeEach(() => {
    clock = new ManualClock();
    late = [];
    watch = new AnswerWatch(clock, 100, () => late.push(clock.monotonicMs()));
  });

  it('says between 100 and 110 ms after a question that there is no answer', async () => {
    watch.asked();
    await clock.advance(99);
    expect(late).toEqual([]);
    await clock.advance(11);
    expect(late).toEqual([110]);
  });

  it('says nothing while answers come in time, however many are under way', async () => {
    for (let i = 0; i < 100; i++) {
      watch.asked();
      if (i >= 9) watch.answered();
      await clock.advance(10);
    }
    expect(late).toEqual([]);
  });

  it('sees the one that is not answered behind those that are', async () => {
    watch.asked();
    await clock.advance(50);
    watch.asked();
    watch.answered();
    await clock.advance(95);
    expect(late).toEqual([]);
    await clock.advance(20);
    expect(late).toHaveLength(1);
  });

  it('rests where nothing is under way', async () => {
    watch.asked();
    watch.answered();
    await clock.advance(10);
    expect(clock.timers).toBe(0);
    watch.asked();
    watch.stop();
    await clock.advance(1_000);
    expect(late).toEqual([]);
  });
});
