import { expect, test } from 'vitest';
import { StartRoom } from '../../src/process/request.ts';
import { eventually } from '../support/eventually.ts';
import { start } from '../support/process/harness.ts';

const LARGE = { command: ['true'], env: { LARGE: 'x'.repeat(1024 * 1024) } };

test('large requests are refused while many of them are being started, and small ones are not', async () => {
  const room = new StartRoom();
  const held = Promise.withResolvers<void>();
  const started = Array.from({ length: 100 }, () => room.run(LARGE, () => held.promise));
  const refused = Promise.allSettled(started);
  await expect(room.run({ command: ['true'] }, async () => 'started')).resolves.toBe('started');
  held.resolve();
  const ends = await refused;
  const over = ends.filter(({ status }) => status === 'rejected');
  expect(over.length).toBeGreaterThanOrEqual(36);
  expect(over[0]).toMatchObject({ reason: { code: 'too_many_requests' } });
  await expect(room.run(LARGE, async () => 'again')).resolves.toBe('again');
});

test('a long command is shown whole by its process alone and told whole by its event', async () => {
  const { supervisor, events } = await start();
  const command = ['true', 'ä'.repeat(50_000), '', 'end'];
  const { process } = await supervisor.spawn({ command });
  const shown = process.command.join('');
  expect(process.command_truncated).toBe(true);
  expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(1_024);
  expect(command.join('').startsWith(shown)).toBe(true);
  expect((await supervisor.page(1, null)).processes[0]).toMatchObject({ command: process.command });
  expect(await supervisor.get(process.process_id)).toMatchObject({ command, command_truncated: false });
  await eventually(() => expect(events[0]?.payload).toMatchObject({ command }));
});
