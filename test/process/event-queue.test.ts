import { pino } from 'pino';
import { expect, test } from 'vitest';
import { PROCESS_EVENTS_WAITING_MAX_BYTES } from '../../src/contract/defaults.ts';
import type { ProcessEvent } from '../../src/contract/events.ts';
import { EventQueue, WaitingEvents } from '../../src/process/event-queue.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { start } from '../support/process/harness.ts';

test('events that cannot be stored are kept, retried and stored in order', async () => {
  const clock = new ManualClock();
  const stored: string[] = [];
  let is_broken = true;
  const { supervisor } = await start(
    {
      emit: async (event) => {
        if (is_broken) throw new Error('disk');
        stored.push(event.event_type);
      },
    },
    clock,
  );
  const { process } = await supervisor.spawn({ command: ['true'] });
  expect(await supervisor.finished(process.process_id)).toMatchObject({ state: 'exited' });
  await clock.advance(60_000);
  expect(stored).toEqual([]);
  is_broken = false;
  await clock.advance(6_000);
  await eventually(() => expect(stored).toHaveLength(2));
  expect(stored).toEqual(['process.started', 'process.exited']);
});

test('while too many events wait in sum nothing is started, and none of them is lost', async () => {
  let is_broken = true;
  const stored: string[] = [];
  const clock = new ManualClock();
  const emit = async (_event: unknown, key: string) => {
    if (is_broken) throw new Error('full');
    stored.push(key);
  };
  const parts = {
    clock,
    log: pino({ level: 'silent' }),
    emit,
    waiting: new WaitingEvents(),
    onStored: () => {},
  };
  const queue = new EventQueue(parts, []);
  const text = 'x'.repeat(2_048);
  const payload = { stdout_preview: text, stderr_preview: text };
  const event = { event_type: 'process.exited', happened_at_ms: 1, payload } as unknown as ProcessEvent;
  let count = 0;
  for (; !parts.waiting.is_full; count++) queue.add({ key: String(count), event });
  expect(count).toBeLessThan(PROCESS_EVENTS_WAITING_MAX_BYTES / 8_192);
  expect(() => parts.waiting.checkRoom()).toThrow(expect.objectContaining({ code: 'outbox_full' }));
  const others = new EventQueue(parts, []);
  expect(others.is_full).toBe(true);
  queue.send();
  is_broken = false;
  const flushed = queue.flush();
  await clock.advance(10_000);
  await flushed;
  expect(stored).toHaveLength(count);
  expect([parts.waiting.bytes, others.is_full]).toEqual([0, false]);
});
