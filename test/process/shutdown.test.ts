import { expect, test } from 'vitest';
import { start } from '../support/process/harness.ts';

test('stopping ends every process and reports every end', async () => {
  const { supervisor, events } = await start({ grace_ms: 200 });
  await supervisor.spawn({ command: ['sleep', '100'] });
  await supervisor.spawn({
    shell: 'trap "" TERM; echo on; while true; do sleep 100; done',
    process_id: 'stubborn',
  });
  for await (const item of await supervisor.output('stubborn', { streams: ['stdout'], follow: true })) {
    if (item.type === 'output') break;
  }
  await supervisor.stop();
  const ends = events.filter(({ event_type }) => event_type === 'process.exited');
  expect(ends.map(({ payload }) => 'signal' in payload && payload.signal).sort()).toEqual([
    'SIGKILL',
    'SIGTERM',
  ]);
  await expect(supervisor.spawn({ command: ['true'] })).rejects.toMatchObject({ code: 'shutting_down' });
});
