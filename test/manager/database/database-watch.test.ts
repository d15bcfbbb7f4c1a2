import { expect, it } from 'vitest';
import { DatabaseWatch } from '../../../src/manager/database/database-watch.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const never = () => new Promise<never>(() => {});

function scene() {
  const clock = new ManualClock();
  const database = { answers: true, probes: 0 };
  const watch = new DatabaseWatch(clock, async () => {
    database.probes += 1;
    if (!database.answers) await never();
  });
  return { clock, database, watch };
}

/** What has become of a promise so far. */
function outcomeOf(promise: Promise<unknown>) {
  const state = { became: 'waiting' };
  promise.then(
    () => (state.became = 'done'),
    () => (state.became = 'refused'),
  );
  return state;
}

it('lets whoever waits for a busy database wait on, and asks it now and then', async () => {
  const { clock, database, watch } = scene();
  const { promise, resolve } = Promise.withResolvers<string>();
  const waiting = watch.run(() => promise);
  const state = outcomeOf(waiting);
  await clock.advance(10_000);
  expect(state.became).toBe('waiting');
  expect(database.probes).toBeGreaterThan(5);
  expect(database.probes).toBeLessThan(20);
  resolve('done');
  expect(await waiting).toBe('done');
});

it('does not ask while everything is quick', async () => {
  const { clock, database, watch } = scene();
  for (let i = 0; i < 100; i++) {
    expect(await watch.run(async () => i)).toBe(i);
    await clock.advance(100);
  }
  expect(database.probes).toBe(0);
});

it('tells everybody within 2 s when it is lost, asks nothing of it meanwhile, and finds it again', async () => {
  const { clock, database, watch } = scene();
  database.answers = false;
  const states = [outcomeOf(watch.run(never)), outcomeOf(watch.run(never))];
  await clock.advance(1_500);
  expect(states.map(({ became }) => became)).toEqual(['refused', 'refused']);
  let asked = 0;
  const ask = async () => ++asked;
  await expect(watch.run(ask)).rejects.toThrow('does not answer');
  expect(asked).toBe(0);
  expect(await Promise.race([watch.run(ask, true).catch(() => 'refused'), Promise.resolve()])).not.toBe(
    'refused',
  );
  expect(asked).toBe(1);
  database.answers = true;
  await clock.advance(2_000);
  expect(await watch.run(ask)).toBe(2);
});
