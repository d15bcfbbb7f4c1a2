import { expect, test } from 'vitest';
import { isAlive, outputOf, program, start, until } from '../../support/process/harness.ts';

test('a descendant that holds the pipes does not delay the end', async () => {
  const { supervisor, events } = await start({ grace_ms: 200 });
  const { process } = await supervisor.spawn({ command: program('leave-behind.mjs') });
  const ended = await supervisor.finished(process.process_id);
  expect(ended).toMatchObject({ state: 'exited', exit_code: 0 });
  await until(() => events.length === 2);
  const pid = Number((await outputOf(supervisor, process.process_id)).stdout);
  expect(await isAlive(pid)).toBe(true);
  await supervisor.remove(process.process_id);
  await until(async () => !(await isAlive(pid)));
});

test('/dev/stdin and /dev/stdout can be opened by the process', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'cat /dev/stdin > /dev/stdout', stdin: 'pipe' });
  await supervisor.writeStdin(process.process_id, { data: [Buffer.from('through')], end: true });
  await supervisor.finished(process.process_id);
  expect((await outputOf(supervisor, process.process_id)).stdout).toBe('through');
});
