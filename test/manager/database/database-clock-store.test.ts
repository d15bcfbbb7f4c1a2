import { expect, it } from 'vitest';
import type { Database } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HOUR_MS = 60 * 60 * 1000;

it('ignores a clock that is set back and follows one that is set forward', async () => {
  const clock = new ManualClock();
  const now = new DatabaseClock({ dialect: 'sqlite' } as Database, clock);
  const began_ms = now.now();
  await clock.advance(1_000);
  clock.step(-HOUR_MS);
  expect(now.now()).toBe(began_ms + 1_000);
  await clock.advance(1_000);
  expect(now.now()).toBe(began_ms + 2_000);
  clock.step(3 * HOUR_MS);
  expect(now.now()).toBe(began_ms + 2_000 + 2 * HOUR_MS);
});
