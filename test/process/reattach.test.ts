import { expect, test } from 'vitest';
import { fileLimit } from '../support/process/file-limit.ts';
import { start } from '../support/process/harness.ts';

test('while no file can be opened no process counts as ended, and a process can be asked for', async () => {
  const limitFiles = fileLimit();
  const first = await start();
  await first.supervisor.spawn({ command: ['sleep', '1000'], process_id: 'p' });
  const { supervisor } = await first.again();
  await limitFiles(3);
  await new Promise((resolve) => setTimeout(resolve, 300)); // some looks of the one that is not its parent
  expect(await supervisor.get('p')).toMatchObject({ state: 'running' });
  await expect(supervisor.remove('p')).rejects.toMatchObject({ code: 'too_many_requests' });
  await limitFiles(1_024);
  expect(await supervisor.get('p')).toMatchObject({ state: 'running' });
  await supervisor.remove('p');
});
