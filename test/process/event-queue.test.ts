import { expect, test } from 'vitest';
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
