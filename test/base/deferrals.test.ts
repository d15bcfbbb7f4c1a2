import { expect, it } from 'vitest';
import { Deferrals } from '../../src/base/deferrals.ts';
import { ManualClock } from '../support/manual-clock.ts';

it('doubles the backoff with each failure, up to a minute', async () => {
  const clock = new ManualClock();
  const deferrals = new Deferrals(clock);
  const delays: number[] = [];
  for (let i = 0; i < 9; i++) {
    deferrals.defer('one');
    const began_ms = clock.monotonicMs();
    while (deferrals.current().length > 0) await clock.advance(500);
    delays.push(clock.monotonicMs() - began_ms);
  }
  expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
});
