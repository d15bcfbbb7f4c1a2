import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { start } from '../support/process/harness.ts';

test('an end by a signal that nobody requested is a crash, and by a requested one an exit', async () => {
  const { supervisor, events } = await start();
  const crashed = await supervisor.spawn({ shell: 'kill -SEGV $$' });
  await supervisor.finished(crashed.process.process_id);
  const killed = await supervisor.spawn({ shell: 'kill -KILL $$' });
  await supervisor.finished(killed.process.process_id);
  const asked = await supervisor.spawn({ command: ['sleep', '100'] });
  supervisor.signal(asked.process.process_id, 'SIGKILL');
  await supervisor.finished(asked.process.process_id);
  const coded = await supervisor.spawn({ shell: 'exit 137' });
  await supervisor.finished(coded.process.process_id);
  await eventually(() => expect(events).toHaveLength(8));
  const ends = events.filter(({ event_type }) => event_type !== 'process.started');
  expect(ends.map(({ event_type, payload }) => [event_type, payload])).toMatchObject([
    ['process.crashed', { exit_code: 139, signal: 'SIGSEGV', reason: 'signal', core_dumped: false }],
    ['process.crashed', { exit_code: 137, signal: 'SIGKILL', reason: 'signal' }],
    ['process.exited', { exit_code: 137, signal: 'SIGKILL' }],
    ['process.exited', { exit_code: 137, signal: null }],
  ]);
});
