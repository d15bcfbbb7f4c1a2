import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { limitIdle } from '../../../src/base/http/idle-limit.ts';
import { ManualClock } from '../../support/manual-clock.ts';

it('cuts an idle connection, and not one that was idle because the program was stopped', async () => {
  const clock = new ManualClock();
  const answer = new EventEmitter();
  const calls: string[] = [];
  const socket = {
    setTimeout: (ms: number) => calls.push(`limit ${ms}`),
    destroy: () => calls.push('cut'),
  };
  limitIdle(answer as ServerResponse, socket as unknown as Socket, 60_000, clock);
  await clock.advance(10_000);
  clock.freeze(600_000);
  answer.emit('timeout');
  expect(calls).toEqual(['limit 60000', 'limit 60000']);
  await clock.advance(60_000);
  answer.emit('timeout');
  expect(calls).toEqual(['limit 60000', 'limit 60000', 'cut']);
  answer.emit('close');
  expect(clock.timers).toBe(0);
});
