import { expect, it } from 'vitest';
import { LastAnswer } from '../../../src/outbox/sqlite/last-answer.ts';
import { ManualClock } from '../../support/manual-clock.ts';

it('is the last one while there is no new one, and is asked for once at a time', async () => {
  const clock = new ManualClock();
  const asked: PromiseWithResolvers<number>[] = [];
  const answer = new LastAnswer(
    clock,
    () => {
      const next = Promise.withResolvers<number>();
      asked.push(next);
      return next.promise;
    },
    0,
  );
  const first = answer.get();
  asked[0]?.resolve(1);
  expect(await first).toBe(1);
  const late = [answer.get(), answer.get(), answer.get()];
  await clock.advance(500);
  expect(await Promise.all(late)).toEqual([1, 1, 1]);
  expect(asked).toHaveLength(2);
  asked[1]?.reject(new Error('unavailable'));
  await clock.advance(0);
  const next = answer.get();
  asked[2]?.resolve(3);
  expect(await next).toBe(3);
  expect(clock.timers).toBe(0);
});
