import { expect, test } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { start } from '../support/process/harness.ts';

test('waiting ends when the process ends, the time is over or the caller leaves', async () => {
  const clock = new ManualClock();
  const { supervisor } = await start({}, clock);
  const { process } = await supervisor.spawn({ command: ['cat'], stdin: 'pipe' });
  const timed = supervisor.wait(process.process_id, { for: 'exit', timeout_ms: 5_000 });
  await clock.advance(5_000);
  expect(await timed).toBe(null);
  const left = new AbortController();
  const leaving = supervisor.wait(process.process_id, { for: 'exit', signal: left.signal });
  left.abort();
  expect(await leaving).toBe(null);
  const waiting = supervisor.wait(process.process_id, { for: 'exit' });
  await supervisor.writeStdin(process.process_id, { data: [], end: true });
  expect(await waiting).toMatchObject({ state: 'exited', exit_code: 0 });
  await expect(supervisor.wait(process.process_id, { for: 'ready' })).rejects.toMatchObject({
    code: 'conflict',
  });
});
