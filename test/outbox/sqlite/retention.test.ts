import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { OutboxClient } from '../../../src/outbox/sqlite/client.ts';
import { Retention } from '../../../src/outbox/sqlite/retention.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const NONE = { pending: 0, delivered: 0, failed: 0, expired: 0, foreign: 0, bytes: 0 };

/** A started retention, over a store that answers `prune` with these in turn. */
async function start(answers: (boolean | Error)[], delivered = 1) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const logged: unknown[] = [];
  const store: Pick<OutboxClient, 'counts' | 'isPruneDue' | 'prune'> = {
    counts: () => ({ ...NONE, delivered }),
    isPruneDue: async () => {
      asked.push('isPruneDue');
      return answers.length > 0;
    },
    prune: async () => {
      asked.push('prune');
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return { more: answer === true };
    },
  };
  const log = pino({}, { write: (line) => void logged.push(JSON.parse(line)) });
  const retention = new Retention(store, clock, log);
  onTestFinished(() => retention.stop());
  await retention.start();
  return { clock, asked, logged, retention };
}

it('removes a part at a time every five seconds, until nothing is left to remove', async () => {
  const { clock, asked } = await start([true, true, false]);
  await clock.advance(4_999);
  expect(asked).toEqual([]);
  await clock.advance(1);
  expect(asked).toEqual(['isPruneDue', 'prune', 'prune', 'prune']);
  await clock.advance(5_000);
  expect(asked.slice(4)).toEqual(['isPruneDue']);
});

it('asks nothing while no record is finished', async () => {
  const { clock, asked } = await start([true], 0);
  await clock.advance(60_000);
  expect(asked).toEqual([]);
});

it('tries again where the disk refuses, and says so', async () => {
  const { clock, asked, logged } = await start([new Error('the disk is full'), false]);
  await clock.advance(5_000);
  expect(logged).toMatchObject([{ reason: 'the disk is full' }]);
  await clock.advance(5_000);
  expect(asked).toEqual(['isPruneDue', 'prune', 'isPruneDue', 'prune']);
});

it('removes nothing after its end', async () => {
  const { clock, asked, retention } = await start([true, true]);
  await retention.stop();
  await clock.advance(60_000);
  expect(asked).toEqual([]);
  expect(clock.timers).toBe(0);
});
